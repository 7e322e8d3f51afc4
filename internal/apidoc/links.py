"""Lets pages of the site link to files of the repository that are not in docs."""

import posixpath
import re


def on_page_markdown(markdown, page, config, files):
    def outside(match):
        target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), match[1]))
        return match[0] if target.startswith("docs/") else f"]({config.repo_url}/blob/main/{target})"

    return re.sub(r"\]\((\.\./[^)\s]+)\)", outside, markdown)
