"""Objects as JSON and arrays: plain values, numpy's numbers and arrays, and registered classes.

A value that JSON does not have is written as an object whose first key says what it is:

    nan, inf        {"float": "nan"}
    tuple           {"tuple": [..]}
    dict            {"dict": [[key, value], ..]}
    numpy number    {"number": ["<f8", 0.5]}
    array           {"array": "estimators_.0.tree_.value", "as": "<f8"}, the name of a tensor
    objects         {"objects": [..], "shape": [..]}, an array of them
    RandomState     {"RandomState": its state}
    known class     {"object": "Tree", "state": [[name, value], ..]}
    met before      {"same": 7}, the number of an object or array, counted in the order in which
                    their descriptions end

Nothing else can be read, so a file cannot make Python run code.
"""

import math
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from cart.files.checksum import checksum_of_text, digest_of
from cart.files.errors import DamagedModelError, require

_PLAIN = (type(None), bool, int, str)
_TENSORS = "?bBhHiIlLqQefd"  # characters of the dtypes that safetensors stores directly
_NUMBER = re.compile(r"(\|b1|[<|][iu][1248]|<f[248]|<U\d{1,9}|<[mM]8(\[\w{1,9}\])?)\Z")
_NO_NUMBERS = "nan", "inf", "-inf"  # which JSON does not have
_LAST_CHARACTER = 0x10FFFF


class _Kind(NamedTuple):
    """How objects of a class are turned into a state and back."""

    store: Callable[[Any], dict]
    restore: Callable[[dict], Any]


_NAMES: dict[str, str] = {}  # dotted name of a class -> its name in files
_KINDS: dict[str, _Kind] = {}  # by name in files


def storable(
    name: str,
    cls: type | str,
    store: Callable[[Any], dict] | None = None,
    restore: Callable[[dict], Any] | None = None,
) -> None:
    """Register a class whose objects can be stored in model files.

    Parameters
    ----------
    name : str
        Name of the class in files. It must never change, even if the class moves.
    cls : type or str
        The class, or the dotted name of one that is slow to import.
    store : callable, optional
        Returns the state of an object, a dict by names; by default its fields or attributes.
    restore : callable, optional
        Makes an object from a state and checks it. By default the class is called with the state,
        and then the object's method `check`, if it has one.
    """
    _NAMES[cls if isinstance(cls, str) else _name_of(cls)] = name

    def create(state):
        value = cls(**state)  # type: ignore[operator]
        if hasattr(value, "check"):
            value.check()
        return value

    _KINDS[name] = _Kind(store or _fields_of, restore or create)


def _name_of(cls):
    return f"{cls.__module__}.{cls.__qualname__}"


def _fields_of(value):
    if isinstance(value, tuple):
        return value._asdict()
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return vars(value)


def is_storable(cls: type) -> bool:
    """Whether objects of a class can be stored in model files."""
    return _name_of(cls) in _NAMES


@lru_cache(10_000)
def _is_attribute(cls: Any, name: str) -> bool:
    return name.isidentifier() and not callable(getattr(cls, name, None))


def with_state(value: Any, state: dict) -> Any:
    """Set the attributes of a state in an object, none of which may replace a method."""
    cls: Any = type(value)
    for name in state:
        is_name = type(name) is str and _is_attribute(cls, name)
        require(is_name, f"{name!r} is not an attribute of {type(value).__name__}")
    vars(value).update(state)
    return value


def describe(value: Any) -> tuple[Any, dict[str, np.ndarray]]:
    """Describe an object as JSON and arrays.

    Returns
    -------
    content : JSON
    arrays : dict
        Arrays by name.

    Raises
    ------
    TypeError
        If a part of it, which is named, cannot be stored in a model file.
    """
    writer = _Writer()
    return writer.content_of(value, ""), writer.arrays


def checksum_of(value: Any, without: tuple[type, ...] = ()) -> str:
    """The checksum of an object's description.

    Parameters
    ----------
    value : object
    without : tuple of types
        Of objects of these types, only the class enters the checksum.

    Raises
    ------
    TypeError
        As `describe`.
    """
    # A shortcut for most attributes of an estimator.
    is_plain = type(value) in _PLAIN or (type(value) is float and math.isfinite(value))
    return checksum_of_text(repr(value if is_plain else _Summer(without).content_of(value, "")))


class _Writer:
    """Turns values into JSON content, and collects their arrays."""

    def __init__(self):
        self.arrays = {}
        # id of an object or array -> its number, and itself: kept alive, so that no id is reused
        self._met = {}

    def content_of(self, value, path):
        """The JSON content of a value; `path` is where it was found."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if kind is list:
            return self._contents_of(value, path)
        if kind is tuple:
            return {"tuple": self._contents_of(value, path)}
        if kind is dict:
            return {"dict": self._pairs(value, path)}
        if isinstance(value, np.generic):
            return {"number": _number_of(value, path)}
        return self._once(value, path)

    def _contents_of(self, items, path):
        return [
            item if type(item) in _PLAIN else self.content_of(item, f"{path}.{i}")
            for i, item in enumerate(items)
        ]

    def _once(self, value, path):
        if id(value) in self._met:
            return {"same": self._met[id(value)][0]}
        # `_Summer` does not call `_as_array`, so as to agree with checksums in older pickles.
        content = self._content_of_object(_as_array(value), path)
        self._met[id(value)] = len(self._met), value
        return content

    def _pairs(self, state, path):
        return [
            [self.content_of(key, path), self.content_of(item, f"{path}.{key}")]
            for key, item in state.items()
        ]

    def _content_of_object(self, value, path):
        if type(value) in (np.ndarray, np.memmap):
            return self._content_of_array(value, path)
        if type(value) is np.random.RandomState:
            return {"RandomState": self.content_of(value.get_state(), path)}
        name = _NAMES.get(_name_of(type(value)))
        if name is None:
            raise _refusal(value, path)
        return {"object": name, "state": self._pairs(_KINDS[name].store(value), path)}

    def _content_of_array(self, array, path):
        if array.dtype == object:
            items = [self.content_of(item, path) for item in array.ravel().tolist()]
            return {"objects": items, "shape": list(array.shape)}
        tensor = array
        if not (array.flags.carray and array.dtype.isnative):
            tensor = np.require(array, array.dtype.newbyteorder("="), "CA")
        if array.dtype.kind == "U" and array.itemsize:
            tensor = tensor[..., np.newaxis].view(np.uint32)
        elif array.dtype.kind in "mM":
            tensor = tensor.view(np.int64)
        if tensor.dtype.char not in _TENSORS:
            raise _refusal(array, path)
        return {"array": self._keep(tensor, path), "as": _in_file(array.dtype)}

    def _keep(self, tensor, path):
        name = path.strip(".") or "array"
        while name in self.arrays:
            name += "_"
        self.arrays[name] = tensor
        return name


class _Summer(_Writer):
    """Content of values with digests for arrays; equal even if parts are shared or are copies."""

    def __init__(self, without):
        super().__init__()
        self._without = without

    def _once(self, value, path):
        if isinstance(value, self._without):
            return {"object": type(value).__name__}
        if id(value) not in self._met:
            self._met[id(value)] = self._content_of_object(value, path), value
        return self._met[id(value)][0]

    def _keep(self, tensor, path):
        return tensor.shape, digest_of(tensor)


@lru_cache(1000)
def _in_file(dtype):
    """The name of a dtype in files, where numbers are little-endian."""
    return dtype.newbyteorder("<").str


def _as_array(value):
    """A range, or a pandas or polars column without row names, as an array; all else as it is."""
    is_column = hasattr(value, "to_numpy") and len(getattr(value, "shape", ())) == 1
    is_bare = isinstance(value, range) or (is_column and not has_row_names(value))
    return np.asarray(value) if is_bare else value


def has_row_names(value: Any) -> bool:
    """Whether this is a pandas object whose index is not 0, 1, ..."""
    rows: Any = getattr(value, "index", None)
    return hasattr(rows, "tolist") and rows.tolist() != list(range(len(rows)))


def _number_of(value, path):
    dtype = value.dtype.newbyteorder("<")
    if not _NUMBER.match(dtype.str):
        raise _refusal(value, path)
    number = value.view(np.int64) if dtype.kind in "mM" else value
    item = number.item()
    return [dtype.str, item if not isinstance(item, float) or math.isfinite(item) else str(item)]


def _refusal(value, path):
    what = repr(value)
    what = what if len(what) <= 100 else what[:97] + "..."
    return TypeError(
        f"{path.strip('.') or 'This'} is {what}, a "
        f"{type(value).__module__}.{type(value).__qualname__}, which cannot be saved: a model "
        "file holds numbers, text and the trees of Cartwood, but no code. Set another value, or "
        "use pickle or joblib."
    )


def restore(content: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Make the object of a description.

    Parameters
    ----------
    content : JSON
    arrays : dict
        Arrays by name.

    Raises
    ------
    DamagedModelError, or another error
        If this is not a valid description.
    """
    return _Reader(arrays).value_of(content)


class _Reader:
    """Turns JSON content and arrays back into values."""

    def __init__(self, arrays):
        self._arrays = arrays
        self._met = []

    def value_of(self, content):
        if type(content) in _PLAIN or type(content) is float:
            return content
        if type(content) is list:
            return [self.value_of(item) for item in content]
        (kind, *_), given = content, content
        if kind == "float":
            said = given["float"]
            require(said in _NO_NUMBERS, f"{said!r} is not one of {_NO_NUMBERS}")
            return float(said)
        if kind == "tuple":
            return tuple(self.value_of(given["tuple"]))
        if kind == "dict":
            return self._state(given["dict"])
        if kind == "number":
            return _number_from(*given["number"])
        if kind == "same":
            at = given["same"]
            require(0 <= at < len(self._met), "it refers to an object that it does not hold")
            return self._met[at]
        value = self._object_of(kind, given)
        self._met.append(value)
        return value

    def _state(self, pairs):
        value_of = self.value_of
        return {
            name if type(name) is str else value_of(name): value_of(item) for name, item in pairs
        }

    def _object_of(self, kind, given):
        if kind == "array":
            return self._array_of(given)
        if kind == "objects":
            items = self.value_of(given["objects"])
            array = np.empty(len(items), object)
            array[:] = items
            return array.reshape(given["shape"])
        if kind == "RandomState":
            return _random_state_of(self.value_of(given["RandomState"]))
        require(kind == "object", f"there is an unknown kind {kind!r}")
        name = given["object"]
        if name not in _KINDS:
            raise DamagedModelError(
                f"The file holds a {name!r}, which is not known here. For a forest or a Bagging "
                "use forest.load, for others a newer version of Cartwood."
            )
        return _KINDS[name].restore(self._state(given["state"]))

    def _array_of(self, given):
        tensor, dtype = self._arrays[given["array"]], _dtype_of(given["as"])
        kind = dtype.kind
        if kind == "U":
            require(
                tensor.dtype == np.uint32 and tensor.ndim > 0,
                "an array of text has the wrong dtype or shape",
            )
            require(
                tensor.max(initial=0) <= _LAST_CHARACTER, "an array of text has invalid characters"
            )
            return tensor.view(f"U{tensor.shape[-1]}")[..., 0]
        if kind in "mM":
            require(tensor.dtype == np.int64, "an array of dates has the wrong dtype")
            return tensor.view(dtype)
        require(tensor.dtype == dtype, "an array of numbers has the wrong dtype")
        return tensor


@lru_cache(1_000)
def _dtype_of(name):
    require(_NUMBER.match(name) is not None, f"there is an unknown dtype {name!r}")
    return np.dtype(name)


def _number_from(name, item):
    dtype = _dtype_of(name)
    return np.int64(item).view(dtype) if dtype.kind in "mM" else dtype.type(item)


def _random_state_of(state):
    name, keys, at, has_gauss, gauss = state
    require(name == "MT19937", "a random state has the wrong kind")
    require(keys.shape == (624,) and keys.dtype == np.uint32, "a random state has the wrong keys")
    require(0 <= at <= 624, "the position of a random state is out of range")
    random = np.random.RandomState()
    random.set_state((name, keys, at, has_gauss, gauss))
    return random
