"""Estimators in model files and pickles: what is saved, and how it is checked on loading."""

import os
from copy import deepcopy
from functools import lru_cache, partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cart.files import (
    checksum_of,
    checksum_of_text,
    is_storable,
    read,
    require,
    storable,
    with_state,
    write,
)
from cart.tree.tree import Tree

_PLAIN = (str, int, type(None))


class SavedState:
    """Mixin for estimators that can be saved in model files and whose pickles are checked."""

    def save(self, path: str | os.PathLike) -> None:
        """Save the fitted estimator in a model file, which holds no code.

        The file is in the safetensors format. It is first written under another name in the same
        folder and then renamed, so that readers find the old file or the new one at any time, even
        after a crash. Load it with `cart.load` or `forest.load`.

        Parameters
        ----------
        path : str or path
            A file that exists is replaced.

        Raises
        ------
        TypeError
            If a parameter or attribute, which is named, cannot be stored in a model file: for
            example a function, or an estimator that is not one of Cartwood's. Nothing is written.
        sklearn.exceptions.NotFittedError

        Examples
        --------
        >>> import os, tempfile
        >>> import cart
        >>> tree = cart.DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"])
        >>> path = os.path.join(tempfile.mkdtemp(), "tree.safetensors")
        >>> tree.save(path)
        >>> cart.load(path).predict([[0.9]]).tolist()
        ['yes']
        """
        check_is_fitted(self)
        write(self, path)

    def __getstate__(self):
        state = super().__getstate__()
        # Values equal to the class's own defaults (for estimators without the parameter) are left
        # out, so as not to be stored with every tree.
        state = {name: value for name, value in state.items() if not _is_default(self, name, value)}
        return {**state, "_checksum": _checksum_of(state)} if is_storable(type(self)) else state

    def __setstate__(self, state):
        state = dict(state)
        expected = state.pop("_checksum", None)  # older versions had none
        if expected is not None:
            is_same = _checksum_of(state) == expected
            require(is_same, f"the checksum of a {type(self).__name__} does not match")
        super().__setstate__(state)
        self.check_state()

    def __deepcopy__(self, memo):
        copied = memo[id(self)] = object.__new__(type(self))
        vars(copied).update(deepcopy(vars(self), memo))  # with no checksum to make and to check
        return copied

    def check_state(self) -> None:
        """Check that the fitted attributes belong together, since kernels rely on it.

        Raises
        ------
        cart.files.DamagedModelError
        """


def _is_default(estimator, name, value):
    default = getattr(type(estimator), name, estimator)
    return isinstance(value, _PLAIN) and type(value) is type(default) and value == default


def _checksum_of(state):
    """Checksum of a pickled state, without what has its own checksum or cannot be stored."""
    sums = [
        _sum_of_plain(name, value) if type(value) in _PLAIN else _sum_of(name, value)
        for name, value in state.items()
    ]
    return checksum_of_text(f"[{', '.join(sums)}]")


def _sum_of(name, value):
    """The name and the checksum of an attribute, described as older versions described them."""
    try:
        total = checksum_of(value, without=(Tree, SavedState))
    except TypeError:
        total = ""
    return repr({"tuple": [name, total]})


_sum_of_plain = lru_cache(1000, typed=True)(_sum_of)  # the trees of a forest share them


def load(path: str | os.PathLike, mmap: bool = True) -> Any:
    """Load an estimator from a model file.

    Parameters
    ----------
    path : str or path
        A file written by `save`.
    mmap : bool, default=True
        Map the arrays of the file into memory: loading then takes hardly longer than verifying the
        checksum, and processes share the memory. False copies the arrays into memory; use it for
        files that may be overwritten in place.

    Returns
    -------
    estimator
        The fitted estimator, which predicts as the saved one did.

    Raises
    ------
    cart.files.DamagedModelError
        A ValueError: the file is not a model file, is damaged, or comes from a newer version.
    OSError
        If the file does not exist or cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> import cart
    >>> tree = cart.DecisionTreeRegressor().fit([[0.0], [1.0]], [2.0, 5.0])
    >>> path = os.path.join(tempfile.mkdtemp(), "tree.safetensors")
    >>> tree.save(path)
    >>> cart.load(path).predict([[0.9]]).tolist()
    [5.0]
    """
    model = read(path, mmap)
    require(isinstance(model, SavedState), f"it holds a {type(model).__name__}, not an estimator")
    return model


def storable_estimators(*classes: type) -> None:
    """Register classes of estimators as storable in model files."""
    for cls in classes:
        storable(cls.__name__, cls, vars, partial(_restore, cls))


def _restore(cls, state):
    estimator = with_state(object.__new__(cls), state)
    estimator.check_state()
    return estimator


def check_tree_of(estimator: Any, tree: Any) -> None:
    """Check that a tree has the features, outputs and classes of its estimator.

    The tree of several outputs is told how many classes each has, which its nodes do not say.
    """
    require(isinstance(tree, Tree), "an estimator has no tree")
    require(tree.n_features == estimator.n_features_in_, "a tree has another number of features")
    n_outputs = estimator.n_outputs_
    n_classes = np.atleast_1d(getattr(estimator, "n_classes_", 1))
    require(
        n_classes.shape in ((1,), (n_outputs,)), "the numbers of classes do not match the outputs"
    )
    is_shape = (tree.n_outputs, tree.max_n_classes) == (n_outputs, n_classes.max())
    require(is_shape, "a tree has different outputs or classes")
    if len(n_classes) > 1:
        tree._n_classes = n_classes


def check_classes_of(estimator: Any) -> None:
    """Check that the labels and losses of a classifier match its number of classes."""
    if not hasattr(estimator, "classes_"):
        return
    labels = estimator.classes_ if isinstance(estimator.classes_, list) else [estimator.classes_]
    n_classes = np.atleast_1d(estimator.n_classes_).tolist()
    is_same = all(np.ndim(of_output) == 1 for of_output in labels)
    require(
        is_same and [len(x) for x in labels] == n_classes,
        "the labels do not match the numbers of classes",
    )
    if hasattr(estimator, "loss_"):
        is_of_classes = np.shape(estimator.loss_) == (len(labels[0]), len(labels[0]))
        require(is_of_classes, "the losses do not match the classes")
