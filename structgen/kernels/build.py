"""Compile kernels to object code.

    python structgen/kernels/build.py --out FOLDER [--target linux-x86_64 ...] [--kernel json ...] [--ship]
    python structgen/kernels/build.py --cache

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

PACKAGE = Path(__file__).resolve().parent.parent
_NATIVE = re.compile(r"^define (?:\w+ )*i32 @\"?([^\"(]+)\"?\(ptr[^,]*, ptr[^,]*(?:, i64[^,)]*){5}\)", re.MULTILINE)

# Five int64 from Python objects, the call without the GIL, an int back. A checked kernel that finds an access out of
# bounds comes back with a status, which becomes an IndexError. ``%self`` is `structgen.kernels.objects.ERRORS`.
_ENTRY = """
@.structgen.bounds = private constant [31 x i8] c"kernel access is out of bounds\\00"
@.structgen.count = private constant [27 x i8] c"a kernel takes 5 arguments\\00"
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyErr_Occurred()
declare ptr @PyTuple_GetItem(ptr, i64)
declare void @PyErr_SetString(ptr, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @"{native}"(ptr, ptr, i64, i64, i64, i64, i64)

define ptr @{symbol}(ptr %self, ptr %args, i64 %count) {{
start:
  %result = alloca i64
  %exception = alloca ptr
  store i64 0, ptr %result
  store ptr null, ptr %exception
  %right = icmp eq i64 %count, 5
  br i1 %right, label %read, label %wrong
wrong:
  %type = call ptr @PyTuple_GetItem(ptr %self, i64 1)
  call void @PyErr_SetString(ptr %type, ptr @.structgen.count)
  ret ptr null
read:
{arguments}
  %one = icmp eq i64 %x0, -1
  %two = icmp eq i64 %x1, -1
  %three = icmp eq i64 %x2, -1
  %four = icmp eq i64 %x3, -1
  %five = icmp eq i64 %x4, -1
  %a = or i1 %one, %two
  %b = or i1 %three, %four
  %c = or i1 %a, %b
  %d = or i1 %c, %five
  br i1 %d, label %ask, label %go
ask:
  %error = call ptr @PyErr_Occurred()
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %leave, label %go
leave:
  ret ptr null
go:
  %thread = call ptr @PyEval_SaveThread()
  %status = call i32 @"{native}"(ptr %result, ptr %exception, i64 %x0, i64 %x1, i64 %x2, i64 %x3, i64 %x4)
  call void @PyEval_RestoreThread(ptr %thread)
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %done, label %out
out:
  %index = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  call void @PyErr_SetString(ptr %index, ptr @.structgen.bounds)
  ret ptr null
done:
  %value = load i64, ptr %result
  %object = call ptr @PyLong_FromLongLong(i64 %value)
  ret ptr %object
}}
"""
_ARGUMENT = """  %p{i} = getelementptr ptr, ptr %args, i64 {i}
  %o{i} = load ptr, ptr %p{i}
  %x{i} = call i64 @PyLong_AsLongLong(ptr %o{i})"""


def main(arguments: list[str] | None = None) -> int:
    """The command line; 0 if all objects were written."""
    if __package__ != "structgen.kernels":
        package = types.ModuleType("structgen")
        package.__path__ = [str(PACKAGE)]
        sys.modules["structgen"] = package
        sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != PACKAGE / "kernels"]
    from structgen.kernels import loading, objects

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, help="folder that the objects are written to")
    where.add_argument("--cache", action="store_true", help="what the cache folder lacks, kernels side by side")
    parser.add_argument("--target", action="append", choices=sorted(objects.TARGETS), help="default: this platform")
    parser.add_argument("--kernel", action="append", choices=sorted(objects.ENTRIES), help="default: all")
    parser.add_argument("--ship", action="store_true", help="all targets and kernels, and the hash of their sources")
    options = parser.parse_args(arguments)
    if options.cache:
        return 0 if loading.build(options.kernel) else 1
    targets = sorted(objects.TARGETS) if options.ship else options.target or [objects.host_target()]
    if None in targets:
        print("structgen: no object code can be made for this platform", file=sys.stderr)
        return 1
    os.environ["NUMBA_OPT"] = "0"
    for name in options.kernel or objects.ENTRIES:
        assembly = assemble(objects.ENTRIES[name])
        for target in targets:
            path = objects.object_path(options.out, name, target, objects.is_checked())
            triple = objects.TARGETS[target]
            if name in objects.VECTORS and triple.startswith("x86_64"):
                for width, (cpu, features, _) in objects.WIDER.items():
                    wide = objects.object_path(
                        options.out, objects.wider_name(name, width), target, objects.is_checked()
                    )
                    write(wide, emit(assembly, triple, cpu, features))
            write(path, emit(assembly, triple))
    if options.ship:
        write(options.out / objects.SOURCES, objects.sources_hash().encode())
    return 0


def assemble(module: str) -> str:
    """LLVM's text of a kernel and all that it calls, not optimised."""
    _translate_only()
    run = importlib.import_module(module).run
    (signature,) = run.signatures
    from numba.core.compiler_lock import global_compiler_lock

    with global_compiler_lock:
        run.overloads[signature].library._ensure_finalized()  # links in what it calls
    return str(run.inspect_llvm(signature))


def _translate_only() -> None:
    """Have numba do no more than translate: it would emit machine code for each function on the way to the last, and
    tell listeners of every call of LLVM. Together with a garbage collector that finds nothing, a third of the time."""
    from numba.core import codegen, cpu, event

    from structgen.kernels import jit

    gc.disable()
    jit.KEPT = False
    skipped = ((codegen.JITCodeLibrary, "_finalize_specific"), (cpu.CPUContext, "get_executable"), (event, "broadcast"))
    for owner, name in skipped:
        if hasattr(owner, name):  # else a numba that does it otherwise, and only takes longer
            setattr(owner, name, lambda *_: [].append)  # numba keeps what it takes for the code, a builtin, as a key


def emit(assembly: str, triple: str, cpu: str = "", features: str = "") -> bytes:
    """The object code of a kernel for a target; for processors like ``cpu`` at least (default: all).

    Raises:
        RuntimeError: it would need more than C and Python have (`structgen.kernels.objects.EXTERNALS`).
    """
    from llvmlite import binding as llvm

    from structgen.kernels.objects import EXTERNALS, SYMBOL, sealed

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    natives = [
        name
        for name in _NATIVE.findall(assembly)
        if not name.startswith(("_ZN7cpython", "cfunc.")) and "_make" in name and "_3clocals_3e3run" in name
    ]
    if len(natives) != 1:
        raise RuntimeError(f"expected one native entry, found {natives}")
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="pic", codemodel="default"
    )
    layout = f'target datalayout = "{machine.target_data}"\ntarget triple = "{triple}"\n'
    assembly = re.sub(r"^target (datalayout|triple) = .*\n", "", assembly, flags=re.MULTILINE)
    arguments = "\n".join(_ARGUMENT.format(i=i) for i in range(5))
    module = llvm.parse_assembly(layout + assembly)
    module.link_in(llvm.parse_assembly(layout + _ENTRY.format(native=natives[0], symbol=SYMBOL, arguments=arguments)))
    for function in module.functions:
        if not function.is_declaration and function.name != SYMBOL:
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    _optimise(llvm, module, machine)
    needed = {
        item.name for items in (module.functions, module.global_variables) for item in items if item.is_declaration
    }
    unknown = {name for name in needed if not name.startswith("llvm.")} - EXTERNALS
    if unknown:
        raise RuntimeError(f"kernels may not refer to {sorted(unknown)}")
    return sealed(bytes(machine.emit_object(module)))


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
