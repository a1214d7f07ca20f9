"""Packages that take any estimator: around ours they say what they say around scikit-learn's."""

import numpy as np
import pytest
import sklearn.ensemble
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import forest

X_MANY, Y_MANY = make_classification(
    200, 5, n_informative=3, n_redundant=0, n_classes=3, random_state=0
)
IS_FIRST = (Y_MANY == 0).astype(int)
NAMES = [*"abcde"]


def frame(**more):
    """X_MANY as a DataFrame."""
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(X_MANY, columns=NAMES).assign(**more)


def balanced_bagging(package, forest):
    model = package.BalancedBaggingClassifier(forest[0], n_estimators=3, random_state=0)
    return model.fit(X_MANY, Y_MANY).predict_proba(X_MANY)


def boruta(package, forest):
    found = package.BorutaPy(forest, n_estimators="auto", max_iter=8, random_state=0)
    return found.fit(X_MANY, Y_MANY).ranking_


def conformal_sets(package, forest):
    model = package.SplitConformalClassifier(forest, prefit=True)
    return model.conformalize(X_MANY, Y_MANY).predict_set(X_MANY)[1]


def forward_selection(package, forest):
    search = package.SequentialFeatureSelector(forest, k_features=2, cv=2)
    found = search.fit(X_MANY, Y_MANY)
    return [*found.k_feature_idx_, found.k_score_]


def elimination(package, forest):
    search = package.RecursiveFeatureElimination(forest, scoring="accuracy", cv=2)
    return search.fit(frame(), Y_MANY).transform(frame())


def local_surrogate(package, forest):
    explainer = package.LimeTabularExplainer(X_MANY, random_state=0)
    shown = explainer.explain_instance(X_MANY[0], forest.predict_proba, num_samples=100)
    return [weight for _, weight in shown.as_list()]


def shuffled_importance(package, forest):
    found = package.PermutationImportance(forest, n_iter=2, random_state=0)
    return found.fit(X_MANY, Y_MANY).feature_importances_


def tuned(package, forest):
    package.logging.set_verbosity(package.logging.ERROR)

    def score(trial):
        return _score_of_depth(forest, trial.suggest_int("max_depth", 1, 6))

    sampler = package.samplers.TPESampler(seed=0)
    study = package.create_study(direction="maximize", sampler=sampler)
    study.optimize(score, 4)
    return [study.best_value, study.best_params["max_depth"]]


def kept(package, forest):
    data = package.dumps(forest)
    names = package.get_untrusted_types(data=data)
    return package.loads(data, trusted=names).predict_proba(X_MANY)


def thresholds(package, forest):
    groups = {"sensitive_features": X_MANY[:, 0] > 0}
    model = package.ThresholdOptimizer(estimator=clone(forest), predict_method="predict_proba")
    return model.fit(X_MANY, Y_MANY > 0, **groups).predict(X_MANY, random_state=0, **groups)


def labels(package, forest):
    model = package.BinaryRelevance(clone(forest))
    return model.fit(X_MANY, np.c_[Y_MANY > 0, Y_MANY > 1].astype(int)).predict(X_MANY).toarray()


def table_pipeline(package, forest):
    table = frame(name=np.array([*"xyz"])[Y_MANY])
    model = package.tabular_pipeline(forest)
    return model.fit(table, Y_MANY).predict_proba(table)


def blockwise(package, forest):
    array = pytest.importorskip("dask.array").from_array(X_MANY, chunks=(50, 5))
    return package.ParallelPostFit(forest).predict(array).compute()


def effects(package, forest):
    """Of a treatment, by a learner for each of its values."""
    outcome = X_MANY[:, 0] + IS_FIRST * X_MANY[:, 1]
    model = package.TLearner(models=clone(forest)).fit(outcome, IS_FIRST, X=X_MANY)
    return model.effect(X_MANY)


def partialled_out(package, forest):
    np.random.seed(0)  # which the package draws its folds by
    data = package.DoubleMLData.from_arrays(X_MANY[:, 2:], X_MANY[:, 0], X_MANY[:, 1])
    model = package.DoubleMLPLR(data, clone(forest), clone(forest), n_folds=2)
    return model.fit().coef


def label_quality(package, forest):
    model = package.CleanLearning(clone(forest), seed=0).fit(X_MANY, Y_MANY)
    return model.get_label_issues()["label_quality"]


def p_values(package, forest):
    model = package.WrapClassifier(clone(forest))
    model.fit(X_MANY[:100], Y_MANY[:100])
    model.calibrate(X_MANY[100:], Y_MANY[100:], seed=0)
    return model.predict_p(X_MANY, seed=0)


def intervals_out_of_bag(package, forest):
    model = package.WrapRegressor(clone(forest).set_params(n_estimators=30, oob_score=True))
    model.fit(X_MANY, X_MANY[:, 0])
    model.calibrate(X_MANY, X_MANY[:, 0], oob=True, seed=0)
    return model.predict_int(X_MANY, seed=0)


def counterfactuals(package, forest):
    table = frame(first=IS_FIRST)
    data = package.Data(dataframe=table, continuous_features=NAMES, outcome_name="first")
    model = package.Model(model=clone(forest).fit(frame(), IS_FIRST), backend="sklearn")
    ask = {"total_CFs": 2, "desired_class": "opposite", "random_seed": 0, "verbose": False}
    found = package.Dice(data, model, method="random").generate_counterfactuals(frame()[:1], **ask)
    return found.cf_examples_list[0].final_cfs_df.to_numpy(float)


def glass_box(package, forest):
    shown = package.PartialDependence(clone(forest).fit(frame(), IS_FIRST), frame())
    return shown.explain_global().data(0)["scores"]


def local_effects(package, forest):
    model = clone(forest).fit(frame(), X_MANY[:, 0])
    ask = {"feature": ["a"], "grid_size": 5, "include_CI": False, "plot": False}
    return package.ale(X=frame(), model=model, **ask)["eff"]


def shapley_values(package, forest):
    ask = {"index": "SV", "max_order": 1, "random_state": 0}
    explainer = package.TabularExplainer(model=forest.predict, data=X_MANY[:20], **ask)
    return explainer.explain(X_MANY[0], budget=32, random_state=0).values


def by_group(package, forest):
    table = frame(group=IS_FIRST)
    return (
        package.GroupedPredictor(clone(forest), groups=["group"]).fit(table, Y_MANY).predict(table)
    )


def target_encoded(package, forest):
    table = frame(name=np.array([*"xyz"])[Y_MANY])
    model = make_pipeline(package.TargetEncoder(cols=["name"]), clone(forest))
    return model.fit(table, IS_FIRST).predict_proba(table)


def relevant(package, forest):
    target = frame(first=IS_FIRST)["first"]
    model = make_pipeline(package.FeatureSelector(), clone(forest))
    return model.fit(frame(), target).predict_proba(frame())


def most_uncertain(package, forest):
    from skactiveml.pool import UncertaintySampling

    known = np.where(np.arange(200) < 30, IS_FIRST, np.nan)
    model = package.SklearnClassifier(clone(forest), classes=[0, 1])
    strategy = UncertaintySampling(random_state=0)
    return strategy.query(X=X_MANY, y=known, clf=model.fit(X_MANY, known))


def _score_of_depth(forest, depth):
    model = clone(forest).set_params(max_depth=int(depth))
    return cross_val_score(model, X_MANY, Y_MANY, cv=2).mean()


def minimized(package, forest):
    found = package.fmin(
        lambda depth: -_score_of_depth(forest, depth), package.hp.quniform("depth", 1, 6, 1),
        algo=package.tpe.suggest, max_evals=5, rstate=np.random.default_rng(0),
        show_progressbar=False, verbose=False,
    )  # fmt: skip
    return found["depth"]


def frugally_tuned(package, forest):
    found = package.run(
        lambda config: {"score": _score_of_depth(forest, config["depth"])},
        config={"depth": package.randint(1, 6)}, low_cost_partial_config={"depth": 1},
        metric="score", mode="max", num_samples=3, verbose=0,
    )  # fmt: skip
    return found.best_result["score"]


@pytest.mark.filterwarnings("ignore")  # of the packages
@pytest.mark.parametrize(
    ("package", "program"),
    [
        ("imblearn.ensemble", balanced_bagging), ("boruta", boruta),
        ("mapie.classification", conformal_sets), ("mlxtend.feature_selection", forward_selection),
        ("feature_engine.selection", elimination), ("lime.lime_tabular", local_surrogate),
        ("eli5.sklearn", shuffled_importance), ("optuna", tuned), ("skops.io", kept),
        ("skrub", table_pipeline), ("dask_ml.wrappers", blockwise),
        ("fairlearn.postprocessing", thresholds), ("skmultilearn.problem_transform", labels),
        ("cleanlab.classification", label_quality), ("crepes", p_values),
        ("dice_ml", counterfactuals), ("interpret.blackbox", glass_box), ("sklego.meta", by_group),
        ("category_encoders", target_encoded), ("tsfresh.transformers", relevant),
        ("skactiveml.classifier", most_uncertain), ("hyperopt", minimized),
        ("flaml.tune", frugally_tuned),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_packages_around_classifiers_take_ours_as_they_are(package, program):
    _say_the_same(package, program, "RandomForestClassifier")


@pytest.mark.filterwarnings("ignore")  # of the packages
@pytest.mark.parametrize(
    ("package", "program"),
    [
        ("econml.metalearners", effects), ("doubleml", partialled_out), ("PyALE", local_effects),
        ("shapiq", shapley_values), ("crepes", intervals_out_of_bag),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_packages_around_regressors_take_ours_as_they_are(package, program):
    _say_the_same(package, program, "RandomForestRegressor")


def _say_the_same(package, program, name):
    package = pytest.importorskip(package, reason=f"{package} is not installed")
    found, expected = (
        program(package, getattr(module, name)(7, max_depth=4, random_state=0).fit(X_MANY, Y_MANY))
        for module in (forest, sklearn.ensemble)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
