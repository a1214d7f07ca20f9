"""The public names are documented: every parameter, attributes, and an example that runs."""

import doctest
import inspect
import re

import pytest

import cartwood

NAMES = [name for name in cartwood.__all__ if name != "__version__"]
EACH_NAME = pytest.mark.parametrize("name", NAMES)
ESTIMATORS = [name for name in NAMES if hasattr(getattr(cartwood, name), "fit")]
SCIKIT_LEARNS = ("export_graphviz", "export_text", "plot_tree")  # documented there
RESULTS = (
    *("Comparison", "Importances", "Optimism", "Selection", "ShapValues", "Shadows"),
    "Significance",
)


def docstring_of(name):
    return inspect.getdoc(getattr(cartwood, name)) or ""


def documented(docstring):
    """Names that a docstring describes: parameters, attributes."""
    heads = re.findall(r"^([\w*][\w, *]*?)(?: : .*)?$", docstring, flags=re.MULTILINE)
    return {name.strip(" *") for head in heads for name in head.split(",")}


@EACH_NAME
def test_the_first_line_says_what_it_is(name):
    first, _, rest = docstring_of(name).partition("\n")
    assert first.endswith(".")
    assert rest == "" or rest.startswith("\n")


@EACH_NAME
def test_every_parameter_is_documented(name):
    if name in SCIKIT_LEARNS:
        pytest.skip("scikit-learn documents it")
    if name in RESULTS:
        pytest.skip("made by functions; its attributes are documented")
    parameters = inspect.signature(getattr(cartwood, name)).parameters
    assert {*parameters} - documented(docstring_of(name)) == set()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fitted_attributes_are_documented(name):
    """Those of a fit, and properties."""
    import numpy as np

    kind = getattr(cartwood, name)
    if name == "FeatureSelector":
        pytest.skip("it needs a forest")
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    model = kind().fit(X, y)
    found = {each for each in vars(model) if each.endswith("_") and not each.startswith("_")}
    found |= {
        each for each, value in inspect.getmembers(kind, lambda value: isinstance(value, property))
        if each.endswith("_") and not each.startswith("_") and hasattr(model, each)
    }  # fmt: skip
    assert found - documented(docstring_of(name)) == set()


@EACH_NAME
def test_the_example_runs(name):
    docstring = docstring_of(name)
    if name in SCIKIT_LEARNS:
        pytest.skip("scikit-learn documents it")
    test = doctest.DocTestParser().get_doctest(docstring, {}, name, None, 0)
    assert test.examples, "it has no example"
    report = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=flags).run(test, out=report.append)
    assert not report, "".join(report)
