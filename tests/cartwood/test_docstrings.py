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
    *("Comparison", "CpTable", "Importances", "Masking", "Optimism", "Selection", "ShapValues"),
    *("Shadows", "Significance", "TreePath"),
)
OURS = [name for name in NAMES if name not in SCIKIT_LEARNS]
CALLED = [name for name in OURS if name not in RESULTS]  # by users; results are handed out
FUNCTIONS = [name for name in OURS if inspect.isfunction(getattr(cartwood, name))]


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


@pytest.mark.parametrize("name", OURS)
def test_every_parameter_is_documented(name):
    if name in RESULTS:
        pytest.skip("made by functions; its attributes are documented")
    parameters = inspect.signature(getattr(cartwood, name)).parameters
    assert {*parameters} - documented(docstring_of(name)) == set()


def section(docstring, title):
    """The lines of a section of numpydoc."""
    found = re.search(
        rf"^{title}\n-+\n(.*?)(?=^[A-Z][\w ]+\n-+$|\Z)", docstring, re.DOTALL | re.MULTILINE
    )
    return found[1] if found else ""


def types_said(docstring):
    """Of each parameter that a docstring describes, what stands behind the colon."""
    heads = re.findall(
        r"^([\w*][\w, *]*?)(?: : (.*))?$", section(docstring, "Parameters"), re.MULTILINE
    )
    return {name.strip(" *"): said for names, said in heads for name in names.split(",")}


@pytest.mark.parametrize("name", CALLED)
def test_every_parameter_has_its_type_and_default(name):
    """The default that is said is the signature's."""
    said = types_said(docstring_of(name))
    for parameter, value in inspect.signature(getattr(cartwood, name)).parameters.items():
        if value.kind in (value.VAR_POSITIONAL, value.VAR_KEYWORD):
            continue
        assert said[parameter], f"{parameter} has no type"
        if value.default is None:
            assert re.search(r"default=None$|optional$", said[parameter]), parameter
        elif value.default is not value.empty:
            assert f"default={value.default!r}".replace("'", '"') in said[parameter], parameter


PUBLIC = ("cart", "forest", "importance")


def methods_of(name):
    """Public methods and properties of a class that are ours."""
    kind = getattr(cartwood, name)
    if not isinstance(kind, type):
        return
    for each, member in inspect.getmembers(kind):
        owner = next((base for base in kind.__mro__ if each in vars(base)), kind)
        is_ours = owner.__module__.partition(".")[0] in PUBLIC and not each.startswith("_")
        if is_ours and (inspect.isfunction(member) or isinstance(member, property)):
            yield each, member


@EACH_NAME
def test_every_method_is_documented(name):
    """With a line that says what it does, and all that it takes."""
    for method, member in methods_of(name):
        docstring = inspect.getdoc(member) or ""
        first = docstring.partition("\n\n")[0]
        assert first.endswith((".", "`")), method
        if inspect.isfunction(member):
            _, *parameters = inspect.signature(member).parameters
            assert {*parameters} - {*types_said(docstring)} == set(), method


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_and_errors_are_documented(name):
    """Functions say what they return, and those that judge a forest what they raise."""
    docstring = docstring_of(name)
    assert section(docstring, "Returns"), "Returns"
    assert section(docstring, "Raises"), "Raises"


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


@pytest.mark.parametrize("name", OURS)
def test_the_example_runs(name):
    docstring = docstring_of(name)
    test = doctest.DocTestParser().get_doctest(docstring, {}, name, None, 0)
    assert test.examples, "it has no example"
    report = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=flags).run(test, out=report.append)
    assert not report, "".join(report)
