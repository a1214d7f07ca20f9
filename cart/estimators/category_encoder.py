"""Find the categorical columns and encode their categories as whole numbers."""

import re
from contextlib import contextmanager

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils._missing import is_scalar_nan
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from cart.estimators.category_advice import warn_of_other_texts
from cart.estimators.parameters import MatrixLike
from cart.estimators.target import MISSING_TYPES, is_missing
from cart.files import storable
from cart.table.precision import as_plain_table, plain_numbers, with_columns

# The code of a category that does not occur in the training table.
UNSEEN = -1


class CategoryEncoder:
    """Encodes the categories of each column as 0, 1, ... in sorted order.

    Parameters
    ----------
    mask : ndarray of shape (n_features,), bool
        Which columns hold categories.
    learned : sequence of ndarray
        The categories of each of these columns, in order; nan is the last if values were missing.
    """

    def __init__(self, mask, learned=()):
        self.mask, self._learned = mask, learned

    @property
    def n_categories(self):
        """Number of categories per feature, (n_features,) int64; 0 for columns of numbers."""
        return np.array([0 if c is None else len(c) for c in self.categories], np.int64)

    @property
    def categories(self):
        """List of each feature's categories in the order of their codes; None for numbers."""
        known = iter([c[c == c] for c in self._learned])  # nan is not equal to itself
        return [next(known) if is_categorical else None for is_categorical in self.mask]

    def fit(self, X):
        """Learn the categories of X, and return X encoded as `transform` does."""
        columns = self._factorize(X)
        self._learned = [_sorted(values) for values, _ in columns]
        return self._as_numbers(X, columns)

    def transform(self, X, keeps_missing=False):
        """Encode X as numbers: codes of categories, UNSEEN for those not in the training table.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
        keeps_missing : bool, default=False
            What becomes of missing values in a column that had none in training: they stay missing
            if True, and are UNSEEN otherwise.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
            nan where a value is missing.
        """
        return self._as_numbers(X, self._factorize(X), keeps_missing)

    def _as_numbers(self, X, columns, keeps_missing=False):
        out = np.empty((_num_samples(X), len(self.mask)), order="F")
        of_column = zip(np.flatnonzero(self.mask), columns, self._learned, strict=True)
        for j, (values, places), categories in of_column:
            out[:, j] = _codes_of(values, categories, keeps_missing)[places]
        if not self.mask.all():
            numbers = plain_numbers(_safe_indexing(X, np.flatnonzero(~self.mask), axis=1))
            out[:, ~self.mask] = check_array(
                numbers, dtype=np.float64, ensure_all_finite="allow-nan"
            )
        return out

    def _factorize(self, X):
        """Return values of each categorical column, and the positions of its rows among them.

        Values that can be compared as numbers or text are distinct, those of other arrays are the
        rows'. Missing values are nan.
        """
        if not self.mask.any():
            return []
        of_mask = np.flatnonzero(self.mask)
        if hasattr(X, "iloc") and len(X) > 0:
            return [_distinct(X.iloc[:, j]) for j in of_mask]
        part = np.asarray(_safe_indexing(X, of_mask, axis=1))
        part = part.astype(object) if part.dtype.kind == "T" else part
        part = check_array(part, dtype=None, ensure_all_finite=False)  # inf is a category, too
        if part.dtype.kind != "O":
            return [np.unique(column, return_inverse=True) for column in part.T]
        part = np.where(is_missing(part).astype(bool), np.nan, part)
        return [(column.tolist(), slice(None)) for column in part.T]

    def __setstate__(self, state):
        if "_encoder" in state:
            state = {"mask": state["mask"], "_learned": _learned_by(vars(state["_encoder"]))}
        vars(self).update(state)


def _distinct(column):
    """The distinct values of a pandas column, nan the last, and the places of its rows there."""
    if hasattr(column, "cat"):
        categories, places = column.cat.categories, column.cat.codes.to_numpy()
        is_used = np.bincount(places[places >= 0], minlength=len(categories)) > 0
        distinct = categories[is_used]
        places = np.append(np.cumsum(is_used) - 1, -1)[places]  # the last is of missing values
    else:
        places, distinct = column.factorize()
    missing = [np.nan] if places.min() < 0 else []  # they have the place -1
    return [*distinct.to_numpy(object), *missing], places


def _sorted(values):
    """The categories among values, in order; nan is the last if any is missing."""
    if isinstance(values, np.ndarray):
        return values  # NumPy has sorted them
    present = [value for value in values if value == value]
    known = sorted(dict.fromkeys(present))  # in the order given, which may be right
    if isinstance(known[0] if known else None, tuple):  # then all are
        raise TypeError("tuples would be taken for columns")
    missing = [np.nan] if len(present) < len(values) else []
    return np.array([*known, *missing], object)


def _codes_of(values, categories, keeps_missing):
    """The code of each value; nan or UNSEEN for a missing one.

    If training had missing values, nan is the last of `categories`.
    """
    code = {category: i for i, category in enumerate(categories)}
    missing = np.nan if keeps_missing or categories[-1] != categories[-1] else UNSEEN
    return np.array([code.get(value, UNSEEN) if value == value else missing for value in values])


def _learned_by(fitted):
    """What scikit-learn's encoder, which older versions used and stored, has learned."""
    return fitted.get("categories_", ())


def _state_of(encoder):
    return {"mask": encoder.mask, "learned": encoder._learned}


def _from_state(state):
    if "fitted" in state:
        return CategoryEncoder(state["mask"], _learned_by(state["fitted"]))
    return CategoryEncoder(**state)


storable("CategoryEncoder", CategoryEncoder, _state_of, _from_state)


def encode_categories(estimator, X, reset):
    """Encode the categories of X as numbers.

    Parameters
    ----------
    estimator : estimator
        With `reset`, the categories are learned and it gets `is_categorical_` and `categories_`.
    X : array-like of shape (n_samples, n_features)
    reset : bool
        Learn the categories of X (in `fit`); False uses those that were learned.

    Returns
    -------
    ndarray of shape (n_samples, n_features), float64

    Raises
    ------
    ValueError
        If `categorical_features` contradicts the table or other parameters.
    TypeError
        If the values of a categorical column cannot be sorted.

    Warns
    -----
    UserWarning
        If "from_dtype" takes names of rows, or dates, for categories.
    """
    X = as_columns(X)
    if not reset:
        keeps_missing = getattr(estimator, "missing", "learned") in ("surrogate", "majority")
        return estimator._category_encoder.transform(X, keeps_missing)
    mask = find_categorical(estimator.categorical_features, X)
    if mask.any() and estimator.criterion == "absolute_error":
        raise ValueError(
            'criterion="absolute_error" cannot split on subsets of categories: no order of the '
            'categories is known to give the best subset. Use criterion="squared_error", or '
            "categorical_features=None with ordinal codes."
        )
    signs = estimator.monotonic_cst
    if np.shape(signs) == mask.shape and np.any(np.asarray(signs)[mask]):
        raise ValueError("monotonic_cst must be 0 for categorical features, which have no order.")
    encoder = CategoryEncoder(mask)
    with _naming_what_does_not_sort(X, mask):
        names, X = getattr(X, "columns", ()), encoder.fit(X)
    if isinstance(estimator.categorical_features, str):
        warn_of_other_texts(names, encoder.categories, len(X))
    estimator._category_encoder = encoder
    estimator.is_categorical_ = mask
    estimator.categories_ = encoder.categories
    return X


@contextmanager
def _naming_what_does_not_sort(X, mask):
    """Context in which values that cannot be sorted raise an error that names their column."""
    try:
        yield
    except (TypeError, ValueError) as error:
        for j in np.flatnonzero(mask).tolist():
            values = np.asarray(_safe_indexing(X, [j], axis=1), dtype=object)[:, 0]
            known = [v for v in values if np.ndim(v) > 0 or not is_scalar_nan(v)]
            kinds = {type(v).__name__ for v in known} - MISSING_TYPES
            is_plain = not any(isinstance(v, (list, tuple, dict, set, np.ndarray)) for v in known)
            if is_plain and "complex" not in kinds and (kinds <= {"str"} or "str" not in kinds):
                continue
            raise TypeError(
                f"Column {getattr(X, 'columns', range(len(mask)))[j]!r} holds "
                f"{' and '.join(sorted(kinds))}, which cannot be sorted as categories; convert "
                "its values to text, str(value)."
            ) from error
        raise


def count_unseen(model: BaseEstimator, X: MatrixLike) -> np.ndarray:
    """Count, for each column, the rows whose category does not occur in the training table.

    `predict` sends such rows where most rows of a node went in training, without a warning. High
    counts mean that the table differs from the one that the model was fitted on.

    Parameters
    ----------
    model : fitted tree or forest of Cartwood
    X : array-like of shape (n_samples, n_features)
        As `model.predict` takes it.

    Returns
    -------
    ndarray of shape (n_features,), int64
        0 for columns of numbers. Missing values are not counted.

    Raises
    ------
    TypeError
        If the model is not a tree or forest of Cartwood.
    ValueError
        If the columns of X are not those that the model was fitted on.
    sklearn.exceptions.NotFittedError

    Examples
    --------
    >>> import numpy as np
    >>> from cartwood import RandomForestRegressor, count_unseen
    >>> X = np.array([["Oslo", 1.0], ["Rome", 2.0], ["Oslo", 3.0]], dtype=object)
    >>> forest = RandomForestRegressor(5, categorical_features=[0], random_state=0)
    >>> forest = forest.fit(X, [7.0, 4.0, 7.0])
    >>> count_unseen(forest, [["Porto", 1.0], ["Rome", 9.0], ["Quito", 2.0]])
    array([2, 0])
    """
    if not hasattr(model, "categorical_features"):
        raise TypeError(
            f"count_unseen needs a tree or forest of Cartwood, but got {type(model).__name__}; "
            "for a Pipeline pass pipeline[-1], for a search best_estimator_."
        )
    check_is_fitted(model)
    encoder = getattr(model, "_category_encoder", None)
    X = X if encoder is None and issparse(X) else as_columns(X)
    validate_data(model, X, reset=False, skip_check_array=True)
    if encoder is None:
        return np.zeros(model.n_features_in_, np.int64)
    codes = encoder.transform(X, keeps_missing=True)
    return np.count_nonzero((codes == UNSEEN) & encoder.mask, axis=0)


def as_columns(X):
    """X as a DataFrame or a two-dimensional array, with dates converted to seconds.

    Sparse columns of a DataFrame become dense, unless all its columns are sparse.

    Raises
    ------
    ValueError
        If X is sparse or not two-dimensional.
    """
    if issparse(X):
        raise ValueError(
            "categorical_features needs a dense table, but X is sparse; use X.toarray(), or "
            "categorical_features=None."
        )
    X = as_plain_table(X)
    if not hasattr(X, "columns"):
        X = np.asarray(X, dtype=None if hasattr(X, "dtype") else object)
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead. Reshape your data.")
    if hasattr(X, "isetitem") and not hasattr(X, "sparse"):
        sparse = [j for j, dtype in enumerate(X.dtypes) if hasattr(dtype, "fill_value")]
        return with_columns(X, {j: X.iloc[:, j].sparse.to_dense() for j in sparse})
    return X


def find_categorical(categorical_features, X):
    """Mask of the columns that hold categories.

    Parameters
    ----------
    categorical_features : array-like of bool, int or str, or "from_dtype"
        A mask, column numbers or column names; "from_dtype" means the categorical and string
        columns of a DataFrame.
    X : DataFrame or ndarray of shape (n_samples, n_features)

    Returns
    -------
    ndarray of shape (n_features,), bool

    Raises
    ------
    ValueError
        If `categorical_features` does not match the columns of X.
    """
    n_features = X.shape[1]
    if isinstance(categorical_features, str):  # "from_dtype"
        if not hasattr(X, "columns"):
            raise ValueError(
                'categorical_features="from_dtype" needs a DataFrame; for an array pass a mask '
                "or column numbers."
            )
        return np.array([_holds_categories(X[name].dtype) for name in X.columns])
    chosen = np.asarray(categorical_features)
    if chosen.size == 0:
        return np.zeros(n_features, bool)
    if chosen.ndim != 1 or chosen.dtype.kind not in "biuUO":
        raise ValueError(
            "categorical_features must be a mask, column numbers or column names, but is "
            f"{categorical_features!r}."
        )
    if chosen.dtype.kind == "b":
        if len(chosen) != n_features:
            raise ValueError(
                f"categorical_features is a mask of {len(chosen)} columns, but X has {n_features}."
            )
        return chosen.copy()
    if chosen.dtype.kind in "UO":
        chosen = _numbers_of(categorical_features, X)
    if chosen.min() < 0 or chosen.max() >= n_features:
        raise ValueError(
            f"categorical_features must be column numbers in [0, {n_features}), but is "
            f"{categorical_features!r}."
        )
    return np.isin(np.arange(n_features), chosen)


def _numbers_of(names, X):
    known = list(getattr(X, "columns", []))
    strange = [name for name in names if name not in known]
    if strange:
        instead = "" if known else "; X has no column names, so pass column numbers or a mask"
        raise ValueError(
            f"categorical_features names columns that X does not have: {strange}{instead}."
        )
    return np.array([known.index(name) for name in names])


def _holds_categories(dtype):
    """Whether this is a categorical, string or object dtype of pandas, polars or Arrow."""
    name = re.split(r"[(\[<]", str(dtype), maxsplit=1)[0]
    return name.lower() in _CATEGORICAL_DTYPES or dtype == "category"


_CATEGORICAL_DTYPES = {
    "category", "categorical", "dictionary", "enum", "large_string", "object", "str", "string",
    "utf8",
}  # fmt: skip


def match_categories(estimator, X, reset):
    """Remove the categories and dates of an earlier fit, or check that a warm start keeps them.

    With `reset`, an estimator without `categorical_features` loses what an earlier fit learned of
    categories: kernels rely on these attributes.

    Raises
    ------
    ValueError
        If `reset` is False and the trees that are kept were grown with other categorical columns.
    """
    features = estimator.categorical_features
    if reset:
        vars(estimator).pop("_are_dates", None)
    if not reset:
        kept = getattr(estimator, "is_categorical_", np.zeros(estimator.n_features_in_, bool))
        mask = (
            np.zeros_like(kept) if features is None else find_categorical(features, as_columns(X))
        )
        if len(mask) == len(kept) and (mask != kept).any():
            raise ValueError(
                "The trees kept by warm_start=True were grown with categories in columns "
                f"{np.flatnonzero(kept).tolist()}, but now they are in columns "
                f"{np.flatnonzero(mask).tolist()}. Set categorical_features as it was, or "
                "warm_start=False."
            )
    elif features is None:
        for name in ("_category_encoder", "is_categorical_", "categories_"):
            vars(estimator).pop(name, None)
