"""Reading pages of customers and of agents that were taken over: nothing costs much, and nothing hides what runs."""

from __future__ import annotations

import pytest

from webordinary.jobs.page_checks import MOST_ADDRESSES, MOST_ESCAPES, TOO_LARGE, read_page, style_hosts

LENGTH = 1_000_000
"""In a time that grows with the square of it, each of these would take hours."""
EVIL = "<script>evil()</script>"


UNFINISHED = (
    "<a ", "<a/", "<a x=\"", "<a x='", "<a x=y ", "<a x= ", "<!--", "<!", "</", "<?", "<![CDATA[", "<![", "&#",
    "<script><", "<a href=x>", "<img>", "<style>url(  ", "<svg><title>", "<svg><style><a ",
)  # fmt: skip


@pytest.mark.parametrize("piece", UNFINISHED)
def test_a_page_that_never_ends_a_tag_is_read_at_once(piece: str) -> None:
    read_page((piece * (LENGTH // len(piece))).encode())


def test_a_style_sheet_that_is_written_in_escapes_is_refused_like_a_large_one() -> None:
    icons = "".join(f'.i{n}:before {{ content: "\\f{n:03x}" }}' for n in range(4_000))
    assert list(style_hosts(icons)) == []
    assert list(style_hosts("\\75" * (MOST_ESCAPES + 1))) == [TOO_LARGE]


@pytest.mark.parametrize("page", ["<link rel=icon href='data:image/svg+xml,x'>", "<img src='data:image/png;base64,x'>"])
def test_a_picture_in_a_page_is_no_script(page: str) -> None:
    assert (read_page(page.encode()).scripts, read_page(page.encode()).hosts) == (set(), set())


@pytest.mark.parametrize(
    "opened", ["url(", "@import", 'url( "', "/*", "url(//", "image-set(", 'image-set("', "image-set('a'", "\\", "\\2f "]
)
def test_a_style_sheet_that_never_ends_an_address_is_read_at_once(opened: str) -> None:
    assert len(list(style_hosts(opened + " " * LENGTH))) <= 1
    assert len(list(style_hosts(opened * (LENGTH // len(opened))))) <= LENGTH


@pytest.mark.parametrize("page", ["<![<b>", "<![if !mso]>", f"<a href='&#{'9' * 5000};'>", f"<title>&#x{'f' * 5000};"])
def test_odd_declarations_and_references_are_no_error(page: str) -> None:
    assert read_page(f"{page}<title>Home</title>".encode()) is not None


def test_the_addresses_of_one_page_are_bounded() -> None:
    page = read_page("".join(f"<a href='{n}'><img src='{n}'>" for n in range(MOST_ADDRESSES + 100)).encode())
    assert (len(page.links), len(page.pictures), len(page.without_alt)) == (MOST_ADDRESSES,) * 3


@pytest.mark.parametrize(
    "page",
    [
        f"<!-->{EVIL}-->",
        f"<!--->{EVIL}-->",
        f"<!-- --!>{EVIL}-->",
        f'<a =">{EVIL}">',
        f'<a x= =">{EVIL}">',
        f'<a x">{EVIL}">',
        f"<noscript><p title='</noscript>{EVIL}'></noscript>",
        f"<svg><title>{EVIL}</title></svg>",
        f"<svg><![CDATA[><a title=']]>{EVIL}'>",
        "<SCRIPT\f>evil()</script\n>",
        "<script/src=evil.js></script>",
        "<script>evil()",
        "<iframe srcdoc='&lt;script>evil()&lt;/script>'></iframe>",
        "<p oNcLiCk=evil()>x",
        "<p class=a/onclick=evil()>x<p/onclick=evil()>",
        "<a href='java&#115;cript:evil()'>x</a>",
        "<a href=' \x01java\nscript:evil()'>x</a>",
        "<meta http-equiv=refresh content='0;url=//evil.example'>",
        "<script type='application/x-javascript'>evil()</script>",
        "<script type=text/JavaScript1.5>evil()</script>",
        "<script type=text/jscript>evil()</script>",
        "<script type=importmap>{'imports': {'own': 'https://evil.example/x.js'}}</script>",
        "<svg><script href=evil.js></script></svg>",
        "<svg><script xlink:href=' data:text/javascript,evil()'/></svg>",
        "<svg><a><animate attributeName=href values='x; javascript:evil()'/></a></svg>",
        f'<iframe src="data:text/html,{EVIL}"></iframe>',
        f'<object data="data:text/html,{EVIL}"></object>',
        "<link rel=stylesheet href='data:text/css,@import \"//evil.example\"'>",
    ],
)
def test_no_markup_hides_a_script(page: str) -> None:
    assert read_page(page.encode()).scripts


@pytest.mark.parametrize(
    "page",
    [
        "<script src=//evil.example/x.js src=/own.js></script>",
        "<script src='https:evil.example/x.js'></script>",
        "<script src='\\\\evil.example/x.js'></script>",
        "<script src='ht\ntps:/\\u@evil.example:443/x.js'></script>",
        "<base href=//evil.example/><script src=own.js></script>",
        "<link rel='x stylesheet' href=//EVIL.example>",
        "<img srcset='a.png 1x, https://evil.example/b.png 2x'>",
        "<video poster=//evil.example/p.png>",
        "<button formaction='https://evil.example/'>",
        "<svg><image xlink:href='//evil.example/x'/></svg>",
        "<p style='background:url( \"//evil.example/x\" )'>",
        "<style>@import/**/'//evil.example/x';</style>",
        "<svg><script href=https://evil.example/x.js></script></svg>",
        "<link rel='apple-touch-icon' href=//evil.example/x.png>",
        "<link rel=preconnect href=//evil.example>",
        r"<style>a { background: url('\2f\2f evil.example/x') }</style>",
        r"<style>a { background: u\72l(//evil.example/x) }</style>",
        r"<p style='background: url(h\74 tps://evil.example/x)'>",
        "<style>@\\69mport '\\\n//evil.example/x'</style>",
        "<style>a { background: image-set('a}b.png' 1x, 'data:;,' 2x, '//evil.example/c.png' 3x) }</style>",
        r"<style>a { background: image-set('a\22 b.png' 1x, '//evil.example/c.png' 2x) }</style>",
    ],
)
def test_no_markup_hides_the_host_that_something_is_loaded_from(page: str) -> None:
    assert read_page(page.encode()).hosts == {"evil.example"}
