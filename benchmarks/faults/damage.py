"""Damage to saved models: changed bytes, and forged files whose checksum is right."""

import json

import numpy as np
from safetensors.numpy import load, save

from cart.files.container import checksum_of_parts

_EXTREMES = (0, 1, -1, 2, 255, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, 1e308, -1e308, np.nan, np.inf)


def damage(content: bytes, rng: np.random.Generator) -> bytes:
    """A copy of a file's content with some bytes changed, lost, doubled, or moved."""
    content = bytearray(content)
    for _ in range(rng.integers(1, 5)):
        first = int(rng.integers(len(content) + 1))
        end = min(len(content), first + int(2 ** rng.uniform(0, 9)))
        match rng.integers(8):
            case 0 | 1:
                _flip(content, first, rng)
            case 2:
                content[first : first + 1] = rng.bytes(1)
            case 3:
                content[first:end] = bytes(end - first)
            case 4:
                del content[first:end]
            case 5:
                content[first:first] = rng.bytes(end - first)
            case 6:
                content[first:first] = content[first:end]
            case 7 if rng.random() < 0.3:
                del content[first:]
    return bytes(content)


def _flip(content, first, rng):
    if first < len(content):
        content[first] ^= 1 << int(rng.integers(8))


def forge(content: bytes, rng: np.random.Generator) -> bytes:
    """A model file with other numbers or other text, but a right checksum."""
    arrays = {name: array.copy() for name, array in load(content).items()}
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    model = json.loads(header["__metadata__"]["cartwood"])
    for _ in range(rng.integers(1, 4)):
        if arrays and rng.random() < 0.6:
            name = sorted(arrays)[rng.integers(len(arrays))]
            arrays[name] = _forge_array(arrays[name], rng)
        else:
            model = _forge_json(model, rng)
    text = json.dumps(model)
    checksum = checksum_of_parts(text, arrays)
    return save(arrays, {"format": "1", "cartwood": text, "checksum": checksum})


def _forge_array(array, rng):
    flat = array.ravel().copy()
    with np.errstate(all="ignore"):
        match rng.integers(5):
            case 0 if len(flat):
                return flat[: rng.integers(len(flat))]
            case 1:
                return np.concatenate((array, array)) if array.ndim else array
            case 2:
                return array.astype(rng.choice(["u1", "i4", "i8", "f8"]))
            case _ if len(flat):
                extreme = np.array(_EXTREMES[rng.integers(len(_EXTREMES))], dtype=object)
                value = extreme.astype(np.float64).astype(array.dtype)
                flat[rng.integers(len(flat))] = value
                if rng.random() < 0.5:
                    flat[rng.integers(len(flat))] = flat[rng.integers(len(flat))]
        return flat.reshape(array.shape)


def _forge_json(value, rng):
    """Replace a value at a random place."""
    places = [(value, key) for key in _keys(value)]
    for holder, key in places:
        inner = holder[key]
        places.extend((inner, below) for below in _keys(inner))
    if not places:
        return None
    holder, key = places[rng.integers(len(places))]
    match rng.integers(4):
        case 0:
            other, other_key = places[rng.integers(len(places))]
            holder[key] = json.loads(json.dumps(other[other_key]))
        case 1 if isinstance(holder, list):
            del holder[key]
        case 2 if isinstance(holder[key], int | float):
            holder[key] += int(rng.integers(-2, 3))
        case _:
            chosen = [None, True, "", "x", [], {}, -1, 0, 3, 2**31, 2**70, 0.5]
            holder[key] = chosen[rng.integers(len(chosen))]
    return value


def _keys(value):
    if isinstance(value, list):
        return range(len(value))
    return list(value) if isinstance(value, dict) else ()
