from structgen.automata.dfa import Dfa
from structgen.automata.pattern import full_match_dfa


def idn_hostname() -> Dfa:
    return full_match_dfa(r'[a-z]+')
