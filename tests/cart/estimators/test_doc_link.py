"""The HTML of every estimator links to its place in our reference."""

from importlib.metadata import PackageNotFoundError

import pytest
from sklearn.utils import estimator_html_repr

import cartwood
from cart.estimators import doc_link

SITE = "https://docs.invalid/cartwood"
ESTIMATORS = [
    name
    for name in cartwood.__all__
    if isinstance(getattr(cartwood, name), type) and hasattr(getattr(cartwood, name), "fit")
]


@pytest.fixture
def addresses(monkeypatch):
    """Those of the project's metadata, as a list that a test fills."""
    known: list[str] = []
    monkeypatch.setattr(
        doc_link, "metadata", lambda name: type("Said", (), {"get_all": lambda *_: known})()
    )
    doc_link.address_of_site.cache_clear()
    yield known
    doc_link.address_of_site.cache_clear()


def create(name):
    kind = getattr(cartwood, name)
    return kind(cartwood.RandomForestClassifier()) if name == "FeatureSelector" else kind()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_it_is_that_of_the_reference(name, addresses):
    addresses += ["Changes, https://else.invalid", f"Documentation, {SITE}/"]
    assert f'href="{SITE}/reference.html#cartwood.{name}"' in estimator_html_repr(create(name))


def test_a_site_that_was_built_here_does(addresses, monkeypatch, tmp_path):
    monkeypatch.setattr(doc_link, "__file__", str(tmp_path / "cart" / "estimators" / "it.py"))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "reference.html").touch()
    found = cartwood.DecisionTreeClassifier()._get_doc_link()
    assert found == f"{(tmp_path / 'site').as_uri()}/reference.html#cartwood.DecisionTreeClassifier"


def test_without_an_address_there_is_no_link(addresses, monkeypatch, tmp_path):
    monkeypatch.setattr(doc_link, "__file__", str(tmp_path / "cart" / "estimators" / "it.py"))
    assert cartwood.DecisionTreeClassifier()._get_doc_link() == ""

    def unknown(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doc_link, "metadata", unknown)
    doc_link.address_of_site.cache_clear()
    assert cartwood.DecisionTreeClassifier()._get_doc_link() == ""


def test_a_class_of_the_user_has_none(addresses):
    addresses.append(f"Documentation, {SITE}")
    kind = type("Own", (cartwood.DecisionTreeClassifier,), {"__module__": "somewhere"})
    assert kind()._get_doc_link() == ""
