"""Reconcile the memory ledger a vLLM server prints with the one computed by hand."""
