"""Which of two shapes a chat template expects message content in: one text, or a list of parts.

Templates do not say, so their syntax tree is searched for a loop over a message's content. What counts as one is the
same as in vLLM, so that both render a conversation to the same prompt.
"""

from collections.abc import Iterable, Iterator

from jinja2 import nodes

CONTENT = "content"


class _NotAName(Exception):
    """A loop or an assignment binds something other than one plain name."""


def iterates_over_content(template: nodes.Template) -> bool:
    """Whether the template reads message content as a list of parts."""
    try:
        messages = set(_message_names(template, _conversation_names(template)))
        return any(_content_loops(template, messages))
    except _NotAName:
        return False  # Same as vLLM: what it cannot follow takes text


def _conversation_names(template: nodes.Template) -> set[str]:
    """`messages`, and the names that templates give it or a slice of it."""
    names = {"messages"}
    size = 0
    while len(names) > size:
        size = len(names)
        names |= {
            _name(assignment.target)
            for assignment in template.find_all(nodes.Assign)
            if _is_name(_stripped(assignment.node), names)
        }
    return names


def _message_names(template: nodes.Template, conversations: set[str]) -> Iterator[str]:
    for loop in template.find_all(nodes.For):
        if _is_name(_stripped(loop.iter), conversations):
            yield _name(loop.target)


def _content_loops(template: nodes.Template, messages: set[str]) -> Iterator[bool]:
    """One item for each loop over the content of a message."""
    in_macros: set[int] = set()
    parameters: dict[int, set[str]] = {}
    for macro in template.find_all(nodes.Macro):
        given_content = set(_parameters_given_content(template, macro, messages))
        for loop in macro.find_all(nodes.For):
            in_macros.add(id(loop))
            if given_content:
                parameters[id(loop)] = given_content
    for loop in template.find_all(nodes.For):
        # outside macros, a variable called content is taken to hold that of a message
        names = parameters.get(id(loop), set()) if id(loop) in in_macros else {CONTENT}
        if _is_content(_stripped(loop.iter), messages) or _is_name(loop.iter, names):
            _name(loop.target)
            yield True


def _parameters_given_content(template: nodes.Template, macro: nodes.Macro, messages: set[str]) -> Iterator[str]:
    """The parameters of a macro that a message's content is passed as."""
    names = [parameter.name for parameter in macro.args]
    for call in template.find_all(nodes.Call):
        if not _is_name(call.node, {macro.name}):
            continue
        arguments: Iterable[tuple[str, nodes.Expr]] = [
            *zip(names, call.args, strict=False),
            *((keyword.key, keyword.value) for keyword in call.kwargs),
        ]
        for name, argument in arguments:
            if name in names and _is_content(_stripped(argument), messages):
                yield name


def _stripped(node: nodes.Node | None) -> nodes.Node | None:
    """An expression without the filters, tests and slices around it."""
    while True:
        if isinstance(node, nodes.Filter | nodes.Test) or (
            isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice)
        ):
            node = node.node
        else:
            return node


def _is_content(node: nodes.Node | None, messages: set[str]) -> bool:
    """`message.content` or `message['content']`."""
    if isinstance(node, nodes.Getattr):
        return node.attr == CONTENT and _is_name(node.node, messages)
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        return bool(node.arg.value == CONTENT) and _is_name(node.node, messages)
    return False


def _is_name(node: nodes.Node | None, names: set[str]) -> bool:
    return isinstance(node, nodes.Name) and node.ctx == "load" and node.name in names


def _name(target: nodes.Node) -> str:
    if not isinstance(target, nodes.Name):
        raise _NotAName
    return target.name
