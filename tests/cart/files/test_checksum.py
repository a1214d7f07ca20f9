"""Checksums: of the bytes alone, the same as in files that earlier versions have written."""

from zlib import crc32

import numpy as np
import pytest

from cart.files.checksum import checksum, digest_of

PART, ROW, SMALL = 2**20, 512, 2**15  # bytes, words, bytes


def plain_digest(content):
    """By the definition that stands in `cart.files.checksum`."""
    if len(content) < SMALL:
        return crc32(content)
    digest = 0
    for first in range(0, len(content), PART):
        part = content[first : first + PART]
        end = len(part) // (8 * ROW) * 8 * ROW
        words = np.frombuffer(part[:end], np.uint64).reshape(-1, ROW)
        for sums in (words.sum(axis=0), words.sum(axis=1)):
            digest = crc32(sums.tobytes(), digest)
        digest = crc32(part[end:], digest)
    return digest


@pytest.mark.parametrize("n", [0, 1, SMALL - 1, SMALL, SMALL + 5, PART, PART + 9, 2 * PART + 4096])
def test_the_digest_is_that_of_the_definition(n):
    array = np.random.default_rng(n).integers(0, 256, n, np.uint8)
    assert digest_of(array) == plain_digest(array.tobytes())


def test_the_digest_is_of_the_bytes_however_they_lie():
    array = np.random.default_rng(0).normal(size=5_000)
    digest = digest_of(array)
    shifted = np.empty(array.nbytes + 1, np.uint8)[1:]
    shifted[:] = array.view(np.uint8)
    fixed = array.copy()
    fixed.flags.writeable = False
    for same in (array.reshape(50, 100), shifted, shifted.view(np.float64), fixed):
        assert digest_of(same) == digest
    for place in (0, 4_500, 4_999):
        other = array.copy()
        other[place] = np.nextafter(other[place], 9.0)
        assert digest_of(other) != digest
    array[[7, 8]] = array[[8, 7]]
    assert digest_of(array) != digest


def test_a_checksum_is_of_texts_and_of_arrays_in_their_order():
    one, two = np.zeros(3), np.ones(3)
    found = [checksum(*given) for given in (
        (["a", "b"], [one, two]), (["ab"], [one, two]), (["a", "b"], [two, one]), (["a", "b"],)
    )]  # fmt: skip
    assert len({*found}) == len(found)
    many = [np.full(3_000_000, float(i)) for i in range(3)]  # in threads
    assert checksum([], many) == checksum([], [array.copy() for array in many])
    assert checksum([], many) != checksum([], many[::-1])
