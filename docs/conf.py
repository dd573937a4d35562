"""The site that is made of these pages: `make docs` builds it into `dist/site`.

It loads nothing from elsewhere, so it can be read from a disk.
"""

from speculative_operator import __version__

project = "speculative-operator"
project_copyright = "the authors of speculative-operator, Apache-2.0"
version = release = __version__

extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["site"]
root_doc = "index"
nitpicky = True

# Headings have the anchors that GitHub gives them, so the pages read the same there.
myst_heading_anchors = 4
# `make docs-links`: GitHub and single-page sites make their anchors in the browser.
linkcheck_anchors = False
linkcheck_ignore = [r"https?://[^/]*example\.com"]
linkcheck_timeout = 20
linkcheck_retries = 2

# `$ ` stands before what is typed, in blocks that show the answer, too.
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

html_theme = "furo"
html_title = f"{project} {version}"
html_static_path = ["site"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"top_of_page_buttons": []}
