"""Sorted texts: names one after another, or the suffixes of documents, and what may come next in either.

An *entry* is where a text begins; entries are in the order of their bytes. What was written so far is an interval of
entries, all that begin with it, and is named by the first of these and its length: one integer, so no state is kept.

A name ends where the next begins. A document ends with the byte FF, which no UTF-8 has and which therefore is never
stepped over. Whatever a file may hold, no access leaves the arrays: places in the text are compared with its length,
entries come from searches within their number.
"""
