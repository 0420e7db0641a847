"""Compile kernels to object code.

    python structgen/core/kernels/build.py --out FOLDER [--target linux-x86_64 ...] [--kernel json ...]
    python structgen/core/kernels/build.py --out FOLDER [--target linux-x86_64 ...] --ship
    python structgen/core/kernels/build.py --cache

Numba translates a kernel without optimising anything (``NUMBA_OPT=0``: it would optimise each function with all that
it calls anew); LLVM then optimises the whole module once and emits it for each target. The kernel's own name is
replaced by a small function in the calling convention of C extensions, so that a call costs Python no more than a
call of a builtin. The only private fact of numba's that is used here is the form of a native entry:
``i32 (ptr result, ptr exception, i64 x 5)``, with status 0 if no exception was raised.

Run as a script in a process of its own: it stands in for the package ``structgen``, whose import would need kernels.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import re
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).resolve().parent
PACKAGE = KERNELS.parents[1]
_NATIVE = re.compile(r"^define (?:\w+ )*i32 @\"?([^\"(]+)\"?\(ptr[^,]*, ptr[^,]*(?:, i64[^,)]*){5}\)", re.MULTILINE)


def main(arguments: list[str] | None = None) -> int:
    """The command line; 0 if all objects were written."""
    if __package__ != "structgen.core.kernels":
        package = types.ModuleType("structgen")
        package.__path__ = [str(PACKAGE)]
        sys.modules["structgen"] = package
        sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != KERNELS]
    from structgen.core.kernels import functions, libraries, loading, objects

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, help="folder that the objects are written to")
    where.add_argument("--cache", action="store_true", help="what the cache folder lacks, kernels side by side")
    parser.add_argument("--target", action="append", choices=sorted(objects.TARGETS), help="default: this platform")
    parser.add_argument("--kernel", action="append", choices=sorted(objects.ENTRIES), help="default: all")
    parser.add_argument("--ship", action="store_true", help="shared libraries, and the hash of their sources")
    options = parser.parse_args(arguments)
    if not functions.has_compiler():
        print("structgen: kernels are compiled by numba: pip install 'structgen-lm[jit]'", file=sys.stderr)
        return 1
    if options.cache:
        return 0 if loading.build(options.kernel) else 1
    targets = options.target or [objects.host_target()]
    if None in targets:
        print("structgen: no object code can be made for this platform", file=sys.stderr)
        return 1
    os.environ["NUMBA_OPT"] = "0"
    for name in options.kernel or objects.ENTRIES:
        assembly = assemble(objects.ENTRIES[name])
        for target in targets:
            for variant, (cpu, features) in objects.variants(name, target).items():
                data = emit(assembly, objects.TARGETS[target], cpu, features, reports_level=name in objects.VECTORS)
                if options.ship:
                    path = objects.library_path(options.out, variant, target)
                    libraries.link(data, target, path, objects.host_target())
                else:
                    path = objects.object_path(options.out, variant, target, objects.is_checked())
                    write(path, objects.sealed(data))
    if options.ship:
        write(options.out / objects.SOURCES, objects.sources_hash().encode())
    return 0


def assemble(module: str) -> str:
    """LLVM's text of a kernel and all that it calls, not optimised."""
    _translate_only()
    run = importlib.import_module(module).run
    (signature,) = run.signatures
    library = run.overloads[signature].library
    return str(_linked(library))


def _translate_only() -> None:
    """Have numba do no more than translate: it would link each function with all that it calls, emit machine code for
    it on the way to the last, and tell listeners of every call of LLVM. Together with a garbage collector that finds
    nothing, a third of the time."""
    from numba.core import codegen, cpu, event

    from structgen.core.kernels import jit

    gc.disable()
    jit.KEPT = False
    skipped = (
        (codegen.CPUCodeLibrary, "finalize"), (codegen.CPUCodeLibrary, "_optimize_functions"),
        (cpu.CPUContext, "get_executable"), (event, "broadcast"),
    )  # fmt: skip
    for owner, name in skipped:
        if not hasattr(owner, name):
            raise RuntimeError(f"this version of numba has no {name}; structgen takes those of its extra jit")
        setattr(owner, name, lambda *_: [].append)  # numba keeps what it takes for the code, a builtin, as a key


def _linked(library: Any) -> Any:
    """The module of a library with those of all that it calls, each once."""
    module, waiting, seen = library._final_module, [library], {library}
    while waiting:
        for other in waiting.pop()._linking_libraries:
            if other not in seen:
                seen.add(other)
                waiting.append(other)
                for function in other._final_module.functions:
                    if not function.is_declaration and function.linkage.name == "external":
                        function.linkage = "linkonce_odr"  # an operator's code stands in each library that uses it
                module.link_in(other._final_module, preserve=True)  # other kernels call it, too
    return module


def emit(assembly: str, triple: str, cpu: str = "", features: str = "", reports_level: bool = False) -> bytes:
    """The object code of a kernel for a target; for processors like ``cpu`` at least (default: all).

    Args:
        reports_level: whether the object says which processors of `structgen.core.kernels.objects.WIDER` run it is on.

    Raises:
        RuntimeError: it would need more than the table has (`structgen.core.kernels.objects.NEEDS`).
    """
    from llvmlite import binding as llvm

    from structgen.core.kernels import glue
    from structgen.core.kernels.objects import LEVEL, SYMBOL, TABLE

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="pic", codemodel="default"
    )
    layout = f'target datalayout = "{machine.target_data}"\ntarget triple = "{triple}"\n'
    native = _native(assembly)
    assembly = re.sub(r"^target (datalayout|triple) = .*\n", "", assembly, flags=re.MULTILINE)
    module = llvm.parse_assembly(layout + assembly)
    module.link_in(llvm.parse_assembly(layout + glue.entry(native, triple, reports_level)))
    exported = (SYMBOL, TABLE, LEVEL, f"{TABLE}.table")
    for items in (module.functions, module.global_variables):
        for item in items:
            if not item.is_declaration and item.name not in exported:
                item.linkage = "internal"
    _optimise(llvm, module, machine)
    module.link_in(llvm.parse_assembly(layout + glue.library(triple)))  # not to be optimised: LLVM calls it unasked
    needed = {
        item.name for items in (module.functions, module.global_variables) for item in items if item.is_declaration
    }
    unknown = {name for name in needed if not name.startswith("llvm.")}
    if unknown:
        raise RuntimeError(f"kernels may not refer to {sorted(unknown)}")
    return bytes(machine.emit_object(module))


def _native(assembly: str) -> str:
    """The name of the function that numba made of a kernel."""
    natives = [
        name
        for name in _NATIVE.findall(assembly)
        if not name.startswith(("_ZN7cpython", "cfunc.")) and "_make" in name and "_3clocals_3e3run" in name
    ]
    if len(natives) != 1:
        raise RuntimeError(f"expected one native entry, found {natives}")
    return str(natives[0])


def _optimise(llvm: Any, module: Any, machine: Any) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.chmod(name, 0o644)  # mkstemp's are private
    os.replace(name, path)


if __name__ == "__main__":
    sys.exit(main())
