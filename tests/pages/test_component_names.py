"""What a chart calls the components of the mixture."""

from lbc.pages.charts import component_names


def config(components=(), **more):
    population = {"discounts": [0.99, 0.9], "shapings": ["sqrt", "log"]} | more
    return {"population": population, "behavior": {"components": list(components)}}


def test_policies_are_called_what_makes_them_differ():
    assert component_names(config(), 2) == ["policy 1: sqrt, discount 0.99", "policy 2: log, discount 0.9"]
    assert component_names(config([1]), 1) == ["policy 2: log, discount 0.9"]
    found = component_names(config(entropy_scalings=[0.003, 0.01]), 2)
    assert found[1] == "policy 2: log, discount 0.9, entropy bonus 0.01"


def test_components_of_one_policy_are_numbered():
    first, second = component_names(config([0, 0]), 2)
    assert first.startswith("component 1, policy 1") and second.startswith("component 2, policy 1")


def test_a_configuration_that_does_not_tell_gives_numbers():
    numbers = ["component 1", "component 2"]
    assert component_names({}, 2) == numbers
    assert component_names(config([0, 5]), 2) == numbers
