"""PyYAML's safe loader, limited to the notation of recipes."""

from __future__ import annotations

import re

import yaml

from .._messages import shown

__all__ = ["RecipeLoader"]


class RecipeLoader(yaml.SafeLoader):
    """Maps with distinct keys, lists, strings, decimal numbers, true, false and null.

    Tags, anchors and aliases are refused. Other scalars, such as ``010``, ``1:30``, ``yes`` and dates, are
    strings.

    Examples
    --------
    >>> import yaml
    >>> from dgl_orient.config.yaml_loader import RecipeLoader
    >>> yaml.load("{lr: 1e-3, k: 010}", RecipeLoader)
    {'lr': 0.001, 'k': '010'}
    """

    yaml_implicit_resolvers = {}

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node:
        event = self.peek_event()
        if event.anchor is not None:
            raise _refused("an anchor or alias, in whose place the values belong", event)
        if event.tag not in (None, "!"):
            raise _refused(f"the tag {shown(event.tag)}, but recipes hold plain values only", event)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, object]:
        mapping = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _refused("a list or map as a key", key)
            if key.value in mapping:
                raise _refused(f"the key {shown(key.value)} twice", key)
            mapping[key.value] = self.construct_object(value, deep=deep)
        return mapping


def _refused(found: str, where: yaml.Event | yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=f"found {found}", problem_mark=where.start_mark)


for _kind, _pattern in {
    "null": r"~|null|",
    "bool": r"[Tt]rue|[Ff]alse",
    # An integer of more digits, which Python would not convert, is a number that is infinite.
    "int": r"[-+]?(0|[1-9][0-9]{0,999})",
    "float": r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
}.items():
    _scalar = re.compile(rf"({_pattern})$")
    RecipeLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", _scalar, [None])
