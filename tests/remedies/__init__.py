"""Every check's remedy: its figures computed again from its page's example, and the log of a server that did what it says."""
