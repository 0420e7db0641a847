"""What stands around a kernel in its object, in LLVM's language: how Python calls it, and how it calls C and Python."""

from __future__ import annotations

import platform

from structgen.core.kernels.objects import LEVEL, NEEDS, SYMBOL, TABLE

# Five int64 from Python objects, the call without the GIL, an int back. A checked kernel that finds an access out of
# bounds comes back with a status, which becomes an IndexError. ``%self`` is `structgen.core.kernels.functions.ERRORS`.
_ENTRY = """
@{table}.table = hidden global [{needs} x ptr] zeroinitializer
@.structgen.bounds = private constant [31 x i8] c"kernel access is out of bounds\\00"
@.structgen.count = private constant [27 x i8] c"a kernel takes 5 arguments\\00"
declare i32 @"{native}"(ptr, ptr, i64, i64, i64, i64, i64)

define {export}ptr @{table}() {{
  ret ptr @{table}.table
}}

define {export}ptr @{symbol}(ptr %self, ptr %args, i64 %count) {{
start:
  %result = alloca i64
  %exception = alloca ptr
  store i64 0, ptr %result
  store ptr null, ptr %exception
  %right = icmp eq i64 %count, 5
  br i1 %right, label %read, label %wrong
wrong:
  %type = call ptr @needs.PyTuple_GetItem(ptr %self, i64 1)
  call void @needs.PyErr_SetString(ptr %type, ptr @.structgen.count)
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
  %error = call ptr @needs.PyErr_Occurred()
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %leave, label %go
leave:
  ret ptr null
go:
  %thread = call ptr @needs.PyEval_SaveThread()
  %status = call i32 @"{native}"(ptr %result, ptr %exception, i64 %x0, i64 %x1, i64 %x2, i64 %x3, i64 %x4)
  call void @needs.PyEval_RestoreThread(ptr %thread)
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %done, label %out
out:
  %index = call ptr @needs.PyTuple_GetItem(ptr %self, i64 0)
  call void @needs.PyErr_SetString(ptr %index, ptr @.structgen.bounds)
  ret ptr null
done:
  %value = load i64, ptr %result
  %object = call ptr @needs.PyLong_FromLongLong(i64 %value)
  ret ptr %object
}}
"""
_ARGUMENT = """  %p{i} = getelementptr ptr, ptr %args, i64 {i}
  %o{i} = load ptr, ptr %p{i}
  %x{i} = call i64 @needs.PyLong_AsLongLong(ptr %o{i})"""
# A function of the table. Names of C's own stand for those that LLVM calls unasked.
_NEED = """
define {linkage} {result} @{name}({parameters}) {{
  %place = getelementptr inbounds [{needs} x ptr], ptr @{table}.table, i64 0, i64 {place}
  %function = load ptr, ptr %place
  {set}tail call {result} %function({parameters})
  ret {result}{value}
}}
"""
_OUTSIDE = "@{table}.table = external hidden global [{needs} x ptr]\n"
# Apple's own names of what LLVM takes for a memset of zeros.
_BZERO = """
define hidden void @{name}(ptr %p0, i64 %p1) {{
  %result = tail call ptr @memset(ptr %p0, i32 0, i64 %p1)
  ret void
}}
"""
_CPUID = 'asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx}"'
_NO_LEVEL = """
define {export}i64 @{level}() {{
  ret i64 0
}}
"""
# The features of LLVM's x86-64-v3 and -v4 as processors tell them, and whether the system saves the registers. By
# register of CPUID (leaves 1, 7, 0x80000001): FMA, MOVBE, OSXSAVE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT; and of AVX-512
# F, DQ, CD, BW, VL.
_LEVEL = """
define {export}i64 @{level}() {{
start:
  %leaf1 = call {{i32, i32, i32, i32}} {cpuid}(i32 1, i32 0)
  %c1 = extractvalue {{i32, i32, i32, i32}} %leaf1, 2
  %has1 = and i32 %c1, {leaf1}
  %all1 = icmp eq i32 %has1, {leaf1}
  br i1 %all1, label %more, label %none
more:
  %saved = call {{i32, i32}} asm sideeffect "xgetbv", "={{ax}},={{dx}},{{cx}}"(i32 0)
  %xcr = extractvalue {{i32, i32}} %saved, 0
  %leaf7 = call {{i32, i32, i32, i32}} {cpuid}(i32 7, i32 0)
  %b7 = extractvalue {{i32, i32, i32, i32}} %leaf7, 1
  %leaf8 = call {{i32, i32, i32, i32}} {cpuid}(i32 -2147483647, i32 0)
  %c8 = extractvalue {{i32, i32, i32, i32}} %leaf8, 2
  %xcr2 = and i32 %xcr, 6
  %saved2 = icmp eq i32 %xcr2, 6
  %has7 = and i32 %b7, {leaf7}
  %all7 = icmp eq i32 %has7, {leaf7}
  %has8 = and i32 %c8, 32
  %all8 = icmp eq i32 %has8, 32
  %two = and i1 %saved2, %all7
  %avx2 = and i1 %two, %all8
  %xcr5 = and i32 %xcr, 230
  %saved5 = icmp eq i32 %xcr5, 230
  %has512 = and i32 %b7, {wide}
  %all512 = icmp eq i32 %has512, {wide}
  %five = and i1 %saved5, %all512
  %avx512 = and i1 %avx2, %five
  %first = zext i1 %avx2 to i64
  %second = zext i1 %avx512 to i64
  %level = add i64 %first, %second
  ret i64 %level
none:
  ret i64 0
}}
"""
_LEAF1, _LEAF7, _WIDE = (sum(1 << bit for bit in bits) for bits in ((12, 22, 27, 28, 29), (3, 5, 8), (16, 17, 28, 30)))
_WIDE -= 1 << 31  # as a signed number


def entry(native: str, triple: str, reports_level: bool) -> str:
    """What is linked to a kernel before all is optimised: what the object exports, and the functions of Python."""
    export = "dllexport " if "windows" in triple else ""
    arguments = "\n".join(_ARGUMENT.format(i=i) for i in range(5))
    text = _ENTRY.format(
        native=native, symbol=SYMBOL, table=TABLE, needs=len(NEEDS), export=export, arguments=arguments
    )
    text += "".join(_need(name, f"needs.{name}", "internal") for name in NEEDS if name.startswith("Py"))
    here = platform.machine().lower() in ("x86_64", "amd64")  # where LLVM reads its assembly language
    level_code = _LEVEL if reports_level and here and triple.startswith("x86_64") else _NO_LEVEL
    return text + level_code.format(level=LEVEL, export=export, cpuid=_CPUID, leaf1=_LEAF1, leaf7=_LEAF7, wide=_WIDE)


def library(triple: str) -> str:
    """The functions of C, through the table."""
    text = _OUTSIDE.format(table=TABLE, needs=len(NEEDS))
    text += "".join(_need(name, name, "hidden") for name in NEEDS if not name.startswith("Py"))
    if "apple" in triple:
        text += "".join(_BZERO.format(name=name) for name in ("bzero", "__bzero"))
    if "windows" in triple:
        text += "@_fltused = hidden global i32 0\n"  # what has floating point refers to it
    return text


def _need(name: str, symbol: str, linkage: str) -> str:
    result, types_ = NEEDS[name].rstrip(")").split(" (")
    parameters = ", ".join(f"{kind} %p{i}" for i, kind in enumerate(filter(None, types_.split(", "))))
    is_void = result == "void"
    return _NEED.format(
        linkage=linkage, result=result, name=symbol, parameters=parameters, needs=len(NEEDS), table=TABLE,
        place=list(NEEDS).index(name), set="" if is_void else "%result = ", value="" if is_void else " %result",
    )  # fmt: skip
