"""UTF-8, a byte at a time (RFC 3629, section 4)."""

from structgen.core.kernels.jit import internal


@internal
def next_expected(expected, byte):
    """Bytes of a UTF-8 character still to come, as ``count | lo << 8 | hi << 16`` (0: none, -1: not UTF-8).

    ``lo`` to ``hi`` is where the next of them lies; those behind it lie between 0x80 and 0xBF.
    """
    if expected < 0:
        return -1
    if expected > 0:
        if not lowest(expected) <= byte <= highest(expected):
            return -1
        more = count(expected) - 1
        return more | (0x80 << 8) | (0xBF << 16) if more > 0 else 0
    if byte < 0x80:
        return 0
    if byte < 0xC2 or byte > 0xF4:
        return -1
    lo = 0xA0 if byte == 0xE0 else 0x90 if byte == 0xF0 else 0x80
    hi = 0x9F if byte == 0xED else 0x8F if byte == 0xF4 else 0xBF
    return (1 + (byte >= 0xE0) + (byte >= 0xF0)) | (lo << 8) | (hi << 16)


@internal
def count(expected):
    """How many bytes are still to come."""
    return expected & 255


@internal
def lowest(expected):
    """The least byte that may come next."""
    return (expected >> 8) & 255


@internal
def highest(expected):
    """The greatest byte that may come next."""
    return expected >> 16


@internal
def begun(byte):
    """The code point's bits in the first byte of its UTF-8."""
    if byte < 0x80:
        return byte
    return byte & (0x1F if byte < 0xE0 else 0x0F if byte < 0xF0 else 0x07)
