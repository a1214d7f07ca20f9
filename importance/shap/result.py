"""The result of `shap_values`: a value per row and feature, with plots and conversions."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse

from cart.table.precision import native_frame
from importance.core.numbers import estimates, list_leaders
from importance.core.plots import as_written
from importance.core.result import Importances, mean_and_error
from importance.shap import plots

BIAS = (
    "It divides up what the forest predicts, not what it gets right: a feature that the trees "
    "overfit also gets a share (Lundberg et al. 2020)."
)


@dataclass(frozen=True, eq=False)
class ShapValues:
    """Contribution of each feature to the prediction of each row.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_features) or (n_rows, n_features, n_classes), float64
        With `is_out_of_bag`, nan in rows that were never out of bag.
    base_value : ndarray of shape () in regression, or (n_classes,)
        The prediction if no feature is known; out of bag, with a leading axis of rows.
    standard_error : ndarray of the shape of `values`, float64
        Of `values`: the root of the sum of squared deviations, over the T trees that explain a row,
        divided by T (T - 1); nan if T < 2.
    feature_names : ndarray of shape (n_features,), str
    classes : ndarray of shape (n_classes,), or None in regression
    n_trees : ndarray of shape (n_rows,), int64
        How many trees explain each row.
    data : array-like of shape (n_rows, n_features)
        The rows, after the steps of a pipeline.
    interactions : ndarray of shape (n_rows, n_features, n_features[, n_classes]), or None
        Off the diagonal, half of what two features do together beyond what they do alone, so each
        pair appears twice; on the diagonal the main effects. A row sums to its entry of `values`.
    is_out_of_bag : bool
    index : pandas.Index, or None
        Names of the rows, if X was a DataFrame.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cartwood import RandomForestClassifier, shap_values
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> forest = RandomForestClassifier(50, random_state=0).fit(X, y)
    >>> found = shap_values(forest, X)
    >>> found.values.shape, found.base_value.round(2)
    ((150, 4, 3), array([0.34, 0.33, 0.33]))
    >>> found.of_class(0)[0].round(3)
    array([0.068, 0.002, 0.272, 0.324])
    >>> found.mean_abs()
    <Importances mean_absolute_shap, ± over rows: petal width (cm) 0.6259 ± 0.0058, petal length
     (cm) 0.5947 ± 0.0083, sepal length (cm) 0.0925 ± 0.0033, sepal width (cm) 0.0254 ± 0.0022>
    """

    values: np.ndarray
    base_value: Any
    standard_error: np.ndarray
    feature_names: np.ndarray
    classes: np.ndarray | None
    n_trees: np.ndarray
    data: Any = field(repr=False)
    interactions: np.ndarray | None = None
    is_out_of_bag: bool = False
    index: Any = field(default=None, repr=False)

    @property
    def prediction(self) -> np.ndarray:
        """Base value plus all values: the model's prediction, (n_rows,) or (n_rows, n_classes)."""
        return self.base_value + self.values.sum(axis=1)

    @property
    def main_effects(self) -> np.ndarray:
        """Diagonal of `interactions`, of the shape of `values`.

        Raises
        ------
        ValueError
            If interactions were not asked for.
        """
        if self.interactions is None:
            raise ValueError("There are no interactions: compute them with interactions=True.")
        diagonal = np.arange(self.values.shape[1])
        return self.interactions[:, diagonal, diagonal]

    def of_class(self, label: Any = None) -> np.ndarray:
        """Values of one class, (n_rows, n_features); in regression all values.

        Parameters
        ----------
        label : label of a class, default=None
            One of `classes`; with two classes the second by default.

        Raises
        ------
        ValueError
            If there is no such class, or there are more than two and none is named.
        """
        at = self.class_position(label)
        return self.values if at is None else self.values[:, :, at]

    def class_position(self, label: Any = None) -> int | None:
        """Position of a class in `classes`; None in regression.

        Parameters
        ----------
        label : label of a class, default=None
            One of `classes`; with two classes the second by default.

        Raises
        ------
        ValueError
            If there is no such class, or there are more than two and none is named.
        """
        if self.classes is None:
            if label is not None:
                raise ValueError(f"label={label!r}: regression has no classes.")
            return None
        if label is None and len(self.classes) <= 2:
            return len(self.classes) - 1
        found = np.flatnonzero(self.classes == label)
        if not len(found):
            known = f"one of {self.classes.tolist()}"
            if label is None:
                raise ValueError(f"There are {len(self.classes)} classes: set label to {known}.")
            raise ValueError(f"label={label!r} must be {known}.")
        return int(found[0])

    def mean_abs(self, per_row: bool = False) -> Importances:
        """Mean of |value| over the rows, summed over classes, with its standard error over rows.

        Parameters
        ----------
        per_row : bool, default=False
            Also return `per_row`: the |value| of each row.

        Returns
        -------
        Importances
        """
        size = np.abs(self.values)
        size = size.sum(axis=2) if size.ndim == 3 else size
        where = "out-of-bag " if self.is_out_of_bag else ""
        return Importances(
            "mean_absolute_shap", *mean_and_error(size), None, self.feature_names,
            unit=f"mean |SHAP| of the {where}predicted "
            + ("value" if self.classes is None else "class shares"),
            uncertainty="over rows", bias=BIAS, per_row=size if per_row else None,
        )  # fmt: skip

    def to_frame(self) -> Any:
        """The values as a pandas.DataFrame with a row per row and a column per feature.

        In classification there is a column per class and feature.
        """
        import pandas as pd

        if self.classes is None:
            return pd.DataFrame(self.values, self.index, self.feature_names)
        columns = pd.MultiIndex.from_product(
            [self.classes, self.feature_names], names=["class", "feature"]
        )
        return pd.DataFrame(np.hstack(list(np.moveaxis(self.values, 2, 0))), self.index, columns)

    def to_explanation(self) -> Any:
        """The values as a shap.Explanation, for the plots of that package.

        Raises
        ------
        ImportError
            If shap is not installed.
        """
        from shap import Explanation

        shape = self.values.shape[:1] + self.values.shape[2:]
        return Explanation(
            self.values, np.broadcast_to(self.base_value, shape).copy(), data=self.table(),
            feature_names=[str(name) for name in self.feature_names],
        )  # fmt: skip

    def table(self) -> np.ndarray:
        """The rows as an array, of dtype object if columns are of different kinds."""
        data = native_frame(self.data)
        # NumPy makes numbers of the dates of polars.
        types = data.schema if hasattr(type(data), "to_dicts") else {}
        if any(str(types[name]).startswith("Date") for name in types):
            return np.array(data.rows(), object)
        return data.toarray() if issparse(data) else np.asarray(data)

    @as_written
    def plot(self, kind: str = "beeswarm", ax: Any = None, **options: Any) -> Any:
        """Draw the values.

        Parameters
        ----------
        kind : {"beeswarm", "bar", "dependence", "waterfall"}, default="beeswarm"
            Respectively: all rows by feature; mean |value|; the values of one feature against the
            feature itself; one row by feature. See `importance.shap.plots` for the options.
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        **options
            Options of that plot, such as `max_features`, or `label` of a class.

        Returns
        -------
        matplotlib.axes.Axes
        """
        kinds: dict[str, Callable] = {
            "beeswarm": plots.plot_beeswarm,
            "bar": plots.plot_bar,
            "dependence": plots.plot_dependence,
            "waterfall": plots.plot_waterfall,
        }
        if kind not in kinds:
            raise ValueError(f"kind={kind!r} is not one of {sorted(kinds)}.")
        if kind == "dependence" and "feature" not in options:
            raise ValueError('kind="dependence" draws one feature: give its name, feature=...')
        return kinds[kind](self, ax=ax, **options)

    def __repr__(self) -> str:
        whole = self.mean_abs()
        texts = estimates(whole.values, whole.standard_error)
        leaders = list_leaders(self.feature_names, whole.values, texts)
        where = ", out of bag" if self.is_out_of_bag else ""
        return f"<ShapValues of {len(self.values)} rows{where}: mean |value| {leaders}>"
