"""What all tests share: kernels are compiled once, wherever a test puts the other caches."""

from __future__ import annotations

import os

from structgen.core.kernels.loading import cache_folder

os.environ.setdefault("STRUCTGEN_KERNELS_DIR", str(cache_folder().parent))
