"""Captures: the named parts of a text, found by parsing it when they are asked for. No engine knows of them.

Of all derivations of a text one is chosen, going down from the start rule and from left to right: at each place the
alternative that is written first (alternatives that begin alike are read together up to where they differ), and of
what it begins with as much as leaves the rest possible. A repetition is one part, and so are its rounds, from the left.
No rule contains itself over the same text. What is ignored between terminals is as short as can be.

An unfinished text is read as one that goes on, and longer than any part is one that goes on, too. Readings in which the
text ends inside a terminal come before those in which it ends between two.

So captures are a function of the grammar and the text alone, whatever was tried and rolled back before.
"""
