"""Peers that fit forests on partitions of the same table: time, score, dependence on the cuts.

A peer that is not installed gets a row that says so.
"""

import importlib.util
import shutil
import time

import numpy as np

from benchmarks.studies.distributed_tables import make_piece, on_dask, start_cluster
from forest import RandomForestClassifier
from forest.partitioned.dask import fit

N_ROWS, N_TREES, DEPTH = 200_000, 20, 8
CUTS = (2, 8)  # partitions


def measure(quick):
    """One row per peer."""
    n_rows = 20_000 if quick else N_ROWS
    X, y = make_piece(0, n_rows + n_rows // 4, 2)
    table = X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]
    rows = []
    with start_cluster(2) as client:
        for name, (package, fit_peer) in _ON_DASK.items():
            if importlib.util.find_spec(package) is None:
                rows.append(_missing(name, f"{package} is not installed"))
                continue
            rows.append(_row(name, fit_peer, client, table))
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        rows.append(_missing("Spark MLlib", "pyspark or Java is not installed"))
    else:
        with _spark_session() as session:
            rows.append(_row("Spark MLlib", _fit_spark, session, table))
    return rows


def _missing(name, why):
    return {"case": name, "what": why, "reached": "-"}


def _row(name, fit_peer, place, table):
    """Fit a table that is cut in two ways, the first of them twice.

    The repeated fit has its kernels compiled, and shows whether models differ by chance rather than
    by the cut.
    """
    X, y, X_test, y_test = table
    seconds, answers = [], []
    for n_parts in (CUTS[0], *CUTS):
        cuts = np.linspace(0, len(X), n_parts + 1).astype(int)[1:-1]
        start = time.perf_counter()
        predict = fit_peer(place, X, y, cuts)
        seconds.append(time.perf_counter() - start)
        answers.append(predict(X_test))
    scores = [np.mean((answer > 0.5) == y_test) for answer in answers]
    again, other = (
        "the same" if np.array_equal(answers[i], answers[j]) else "another"
        for i, j in ((0, 1), (1, 2))
    )
    return {
        "case": name,
        "what": f"{seconds[1]:.1f} s and {seconds[2]:.1f} s at {CUTS[0]} and {CUTS[1]} partitions, "
        f"accuracy {scores[1]:.4f} and {scores[2]:.4f}; fitted again {again} model, of other "
        f"partitions {other}",
        "reached": "-",
    }  # fmt: skip


def _fit_ours(client, X, y, cuts):
    forest = RandomForestClassifier(
        N_TREES, max_depth=DEPTH, max_bins=255, feature_draw="keyed", random_state=0
    )
    model = fit(forest, *on_dask(X, y, cuts), client=client)
    return lambda rows: model.predict_proba(rows)[:, 1]


def _fit_xgboost(client, X, y, cuts):
    import xgboost
    from xgboost import dask as on_xgboost

    data = on_xgboost.DaskQuantileDMatrix(client, *on_dask(X, y, cuts), max_bin=256)
    params = {
        "objective": "binary:logistic", "num_parallel_tree": N_TREES, "max_depth": DEPTH,
        "learning_rate": 1.0, "subsample": 0.632, "colsample_bynode": 0.2, "tree_method": "hist",
        "reg_lambda": 0.0, "min_child_weight": 0.0, "seed": 0,
    }  # fmt: skip
    booster = on_xgboost.train(client, params, data, num_boost_round=1)["booster"]
    return lambda rows: booster.predict(xgboost.DMatrix(rows))


def _fit_lightgbm(client, X, y, cuts):
    import lightgbm

    model = lightgbm.DaskLGBMClassifier(
        client=client, boosting_type="rf", n_estimators=N_TREES, max_depth=DEPTH,
        num_leaves=2**DEPTH, subsample=0.632, subsample_freq=1, feature_fraction_bynode=0.2,
        min_child_samples=1, random_state=0, verbose=-1,
    )  # fmt: skip
    model.fit(*on_dask(X, y, cuts))
    local = model.to_local()
    return lambda rows: local.predict_proba(rows)[:, 1]


_ON_DASK = {
    "forest.dask.fit": ("forest", _fit_ours),
    "Dask's XGBoost forest": ("xgboost", _fit_xgboost),
    "Dask's LightGBM forest": ("lightgbm", _fit_lightgbm),
}


def _spark_session():
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    return builder.config("spark.driver.memory", "3g").getOrCreate()


def _fit_spark(session, X, y, cuts):
    from pyspark.ml.classification import RandomForestClassifier as SparkForest

    forest = SparkForest(
        numTrees=N_TREES, maxDepth=DEPTH, maxBins=255, featureSubsetStrategy="sqrt", seed=0
    )
    model = forest.fit(_spark_table(session, X, len(cuts) + 1, y))

    def predict(rows):
        answer = model.transform(_spark_table(session, rows, 2)).select("probability").collect()
        return np.array([row[0][1] for row in answer])

    return predict


def _spark_table(session, X, n_parts, y=None):
    """A dataframe of vectors, in `n_parts` partitions of consecutive rows."""
    from pyspark.ml.feature import VectorAssembler

    names = [f"x{j}" for j in range(X.shape[1])]
    columns = X.astype(float) if y is None else np.column_stack([X.astype(float), y])
    schema = names if y is None else [*names, "label"]
    rows = session.sparkContext.parallelize(columns.tolist(), n_parts)
    frame = session.createDataFrame(rows, schema)
    return VectorAssembler(inputCols=names, outputCol="features").transform(frame).cache()
