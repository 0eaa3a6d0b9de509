"""Small real sites of two generators."""

from __future__ import annotations

HUGO = {
    "hugo.toml": 'baseURL = "https://amelia.example/"\n[menus]\n  [[menus.main]]\n    name = "About"\n'
    '    pageRef = "/about"\n    weight = 10\n',
    "content/_index.md": '+++\ntitle = "Amelia\'s pots"\n+++\n\nThrown in *Kent*.\n',
    "content/about.md": "---\ntitle: About us\nurl: /who\nlayout: wide\n---\n\nOne potter. Open on\nMondays.\n\n"
    "- Mugs\n- Bowls\n\n```\nOpen on Mondays\n```\n",
    "content/pots/index.md": "---\ntitle: 'Amelia''s pots'\n---\n# Pots\n\n![The kiln](/images/kiln.svg \"Hot\")\n\n"
    "Stoneware for the kitchen table, thrown by hand in a small workshop by the river, in small batches.\n",
    "layouts/index.html": "<h1>{{ .Title }}</h1>",
    "static/style.css": ":root { --accent: #b5573a; }\nbody { background: white; color: #333 }\n",
    "node_modules/x/index.md": "# Open on Mondays\n",
}
MKDOCS = {
    "mkdocs.yml": "site_name: Amelia\nnav:\n  - Home: index.md\n  - About: about.md\ntheme: readthedocs\n",
    "docs/index.md": "# Amelia\r\n\r\nPots & more.\r\n\r\n1. Mugs\r\n2. Bowls\r\n",
    "docs/about.md": "# About\n\n!!! note\n    Closed in May.\n\n## Hours\n\n* Monday\n\n* Friday\n\n"
    "## Prices\n\n* Mug, 24 €\n",
}
