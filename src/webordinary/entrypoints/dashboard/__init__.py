"""The web page, and the customers' sites beside it: translate, call, render."""
