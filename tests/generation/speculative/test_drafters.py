"""What each drafter proposes, against a search by hand or an independent implementation."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structgen.core.engines.json.compiled import compile_json_schema
from structgen.core.vocabulary.vocabulary import TextVocabulary, Vocabulary
from structgen.errors import GenerationError
from structgen.generation.decoding.output import Output
from structgen.generation.models.tiny import TinyModel
from structgen.generation.sampling import SamplingParams
from structgen.generation.speculative.acceptance import Acceptance, Calibration
from structgen.generation.speculative.copying import CopyDrafter
from structgen.generation.speculative.datastore import Datastore, RetrievalDrafter
from structgen.generation.speculative.draft_options import AUTO, MAKERS, NAMES
from structgen.generation.speculative.drafter import Proposal
from structgen.generation.speculative.followed import ClosingDrafter
from structgen.generation.speculative.forced import CanonicalTokens, ForcedDrafter
from structgen.generation.speculative.length import Fixed
from structgen.generation.speculative.merge import grow
from structgen.generation.speculative.model_drafter import DraftReader
from structgen.generation.speculative.ngram import LENGTHS, NgramIndex
from structgen.generation.speculative.recycling import RecyclingDrafter, likeliest
from structgen.generation.speculative.shape import ShapeDrafter
from structgen.generation.speculative.structure import StructureDrafter
from structgen.generation.speculative.tree import TAIL, Node
from tests.fakes import CharTokenizer, WordsMatcher, vocabulary

GREEDY = SamplingParams()


def output(words: Vocabulary, matcher: Any = None) -> Output:
    return Output(words, matcher, GREEDY, max_new_tokens=50)


def node(tail: tuple[int, ...], matcher: Any = None) -> Node:
    return Node(tail[-1], None, tail, matcher)


def test_structure_goes_on_with_its_texts_and_takes_up_others() -> None:
    """Both spellings of a separator are proposed, and once the model has gone one way, the rest of that one."""
    words = TextVocabulary()
    schema = {"type": "object", "properties": {"ab": {"type": "string"}}, "required": ["ab"]}
    written = output(words, compile_json_schema(schema, words).matcher())
    source = StructureDrafter(CanonicalTokens(CharTokenizer(eos=0), words)).start([1], written)

    def paths(text: str) -> set[str]:
        """What can be read along the proposals behind a text, a dozen tokens deep."""
        matcher = compile_json_schema(schema, words).matcher()
        assert matcher.accept_bytes(text.encode())
        root = node((ord(text[-1]),), matcher)
        source.prepare(root, 12)
        found, waiting = set(), [(root, "")]
        while waiting:
            at, read = waiting.pop()
            following = [at.child(proposal.token) for proposal in source.propose(at)] if len(read) < 7 else []
            found |= set() if any(following) else {read}
            waiting += [(child, read + chr(child.token)) for child in following if child is not None]
        return found

    assert paths("{") == {'"ab":"', '"ab": "'}
    assert paths('{"ab":') == {'"', ' "'}
    assert paths('{"ab": "x') == {""}


def test_values_are_copied_from_behind_their_names() -> None:
    words = TextVocabulary()
    prompt = b'City: Paris\nage=36\nfirst name is Ada. {"properties": {"city": {"type": "string"}}} "zip": "0123"\n'
    for written, expected in (
        ('{"city": "', "Paris"),
        ('{"a": 1, "city": "Pa', "ris"),
        ('{"city": "Po', ""),
        ('{"age":', "36"),
        ('{"firstName": "', "Ada"),
        ('{"zip": "', "0123"),
        ('{"type": "', "string"),
        ('{"country": "', ""),
        ("city", ""),
    ):
        out = output(words)
        for token in written.encode():
            out.take(token, 0.0, None, 0)
        source = CopyDrafter(CanonicalTokens(CharTokenizer(eos=0), words), words).start(list(prompt), out)
        at, read = node((ord(written[-1]),)), ""
        source.prepare(at, 12)
        while proposals := source.propose(at):
            read += chr(proposals[0].token)
            child = at.child(proposals[0].token)
            assert child is not None
            at = child
        assert read == expected, written


def test_ngrams_are_the_latest_after_the_longest_context() -> None:
    rng = random.Random(0)
    for _ in range(200):
        text = [rng.randrange(3) for _ in range(30)]
        index = NgramIndex()
        index.extend(text[:11])
        index.extend(text[11:])
        found = index.propose("x", tuple(text[-TAIL:]))
        for length in LENGTHS:  # by hand: walk back through the text
            context = text[-length:]
            places = [at for at in range(length, 30) if text[at - length : at] == context and length <= min(at, TAIL)]
            if places:
                assert found[0].token == text[places[-1]]
                assert found[0].evidence[:3] == ("x", length, 0)
                break
        else:
            assert not found
        assert len({proposal.token for proposal in found}) == len(found)


def test_retrieval_finds_the_longest_match() -> None:
    rng = random.Random(1)
    words = vocabulary()
    for _ in range(60):
        texts = [[rng.randrange(1, 4) for _ in range(rng.randrange(1, 25))] for _ in range(3)]
        store = Datastore.build(texts, words)
        tail = [rng.randrange(1, 4) for _ in range(10)]
        length, found = store.following(tail)
        best, expected = 0, Counter[int]()
        for text in texts:
            for at in range(1, len(text)):
                same = next((n for n in range(min(at, 10)) if text[at - 1 - n] != tail[-1 - n]), min(at, 10))
                if same > best:
                    best, expected = same, Counter()
                if same == best and same:
                    expected[text[at]] += 1
        assert length == best
        assert set(found) <= set(expected)
        if expected.total() <= 8:
            assert found == expected


def test_datastores_are_saved_and_belong_to_a_vocabulary(tmp_path: Path) -> None:
    words = vocabulary()
    path = tmp_path / "x.draft.npz"
    Datastore.build([[5, 6, 7]], words).save(path)
    loaded = Datastore.load(path, words)
    assert loaded.following([5, 6]) == (2, Counter({7: 1})) and len(loaded) == 5
    source = RetrievalDrafter(loaded).start([], output(words))
    assert [proposal.token for proposal in source.propose(node((9, 5, 6)))] == [5]  # as a text begins
    source.extend([9, 5, 6])
    assert [proposal.token for proposal in source.propose(node((9, 5, 6)))] == [7]
    with pytest.raises(GenerationError, match="another vocabulary"):
        Datastore.load(path, vocabulary(b"more"))
    (tmp_path / "no.npz").write_bytes(b"no")
    for content in (b"no", b"", path.read_bytes()[:-40]):
        (tmp_path / "no.npz").write_bytes(content)
        with pytest.raises(GenerationError, match="is no datastore"):
            Datastore.load(tmp_path / "no.npz", words)


def test_a_datastore_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, path = vocabulary(), tmp_path / "x.draft.npz"
    Datastore.build([[5, 6, 7]], words).save(path)

    def cut_off(file: Any, **arrays: Any) -> None:
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", cut_off)
    with pytest.raises(OSError, match="disk full"):
        Datastore.build([[8, 9]], words).save(path)
    assert Datastore.load(path, words).following([5, 6])[0] == 2 and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "name, wrong",
    [
        ("tokens", np.array([1 << 30] * 5, np.uint32)),
        ("tokens", np.zeros((5, 1), np.uint32)),
        ("tokens", np.zeros(5)),
        ("order", np.array([5, 1], np.int32)),
        ("order", np.array([-1], np.int32)),
        ("order", np.array([[0]], np.int32)),
        ("order", np.array([1 << 40])),
    ],
)
def test_a_datastore_that_leads_out_of_itself_is_refused(tmp_path: Path, name: str, wrong: Any) -> None:
    words, path = vocabulary(), tmp_path / "x.draft.npz"
    Datastore.build([[5, 6, 7]], words).save(path)
    with np.load(path) as data:
        arrays = {**data, name: wrong}
    np.savez(path, **arrays)
    with pytest.raises(GenerationError, match="is damaged"):
        Datastore.load(path, words)


class PairTokenizer:
    """Spells ``ab`` as one token, everything else by characters."""

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        ids = []
        while text:
            pair = text.startswith("ab")
            ids.append(130 if pair else ord(text[0]) + 2)
            text = text[2 if pair else 1 :]
        return ids


def test_forced_text_is_drafted_in_canonical_tokens() -> None:
    words = vocabulary(b"ab")
    drafter = ForcedDrafter(CanonicalTokens(PairTokenizer(), words))
    state = WordsMatcher(words, [b"xxabcab", b"xxabcabab"])
    source = drafter.start([1], output(words, state))
    tree = grow(node((1,), state), [source], Acceptance(), Fixed(20), depth=20)
    assert [words.tokens[each.token] for each in tree.nodes] == [b"x", b"x", b"ab", b"c", b"ab"]
    assert [each.evidence[0][1] for each in tree.nodes] == ["inner"] * 4 + ["last"]  # the text may stop there


def test_canonical_tokens_must_spell_the_text() -> None:
    class Lying(PairTokenizer):
        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            return [ord("a") + 2, ord("z") + 2]

    assert CanonicalTokens(Lying(), vocabulary())(b"abc") == (ord("a") + 2,)


def test_recycling_keeps_the_likeliest_of_the_last_time() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 20)).astype(np.float32)
    drafter = RecyclingDrafter(20)
    drafter.learn([4, 5, 4], logits)
    assert [p.token for p in drafter.propose(4)] == np.argsort(-logits[2])[:6].tolist()
    assert drafter.propose(7) == []
    tokens, probs = likeliest(logits, 20)
    assert np.allclose(probs.sum(axis=1), 1)
    torch = pytest.importorskip("torch", reason="torch is not installed")
    again = likeliest(torch.from_numpy(logits), 20)
    assert np.array_equal(tokens, again[0]) and np.allclose(probs, again[1], atol=1e-6)


def test_a_reader_reads_each_token_once() -> None:
    model = TinyModel(20, order=4)
    reader = DraftReader(model, [1, 2, 3])

    def right(path: tuple[int, ...], text: list[int]) -> bool:
        return np.array_equal(reader.logits(path), TinyModel(20, order=4).prefill([[*text, *path]])[0][0])

    assert right((), [1, 2, 3])
    assert right((4,), [1, 2, 3])
    assert right((4, 5), [1, 2, 3])
    assert right((4, 6), [1, 2, 3])  # a branch
    assert right((4, 6), [1, 2, 3])  # again
    reader.extend([4, 6, 7])
    assert (reader.drafted, reader.accepted) == (2, 2)
    assert right((), [1, 2, 3, 4, 6, 7])
    assert right((), [1, 2, 3, 4, 6, 7])
    reader.extend([8])
    reader.extend([9])
    assert right((1, 1), [1, 2, 3, 4, 6, 7, 8, 9])


def test_trees_are_pruned_and_grown_best_first() -> None:
    words = vocabulary()
    state = WordsMatcher(words, [b"abc", b"abd", b"xyz"])
    a, b, c, x, q = (ord(letter) + 2 for letter in "abcxq")

    class Several:
        name = "several"

        def propose(self, at: Node) -> list[Proposal]:
            table = {1: [(a, 0.6), (x, 0.3), (q, 0.1)], a: [(b, 0.9), (q, 0.1)], b: [(c, 0.2)]}
            return [Proposal(token, ("several", at.token, token), prior) for token, prior in table.get(at.token, [])]

    source: Any = Several()
    tree = grow(node((1,), state), [source], Acceptance(), Fixed(3), depth=9)
    assert [each.path() for each in tree.nodes] == [(a,), (a, b), (x,)]
    assert tree.chances == sorted(tree.chances, reverse=True)
    assert tree.flat([7, 1]) == ([7, 1, a, b, x], [-1, 0, 1, 2, 1])
    shaped = grow(node((1,), state), [source], Acceptance(), Fixed(9), depth=9, shape=(1, 1, 1))
    assert [each.path() for each in shaped.nodes] == [(a,), (a, b), (a, b, c)]
    tree.cut(1)
    assert [each.index for each in tree.root.children.values()] == [0, -1]


def test_acceptance_is_learned() -> None:
    acceptance = Acceptance()
    one, two, three = (Proposal(5, (name, 1), prior) for name, prior in (("a", 0.2), ("b", 0.5), ("c", 0.5)))
    assert acceptance.chances([[one]]) == pytest.approx([0.2])
    assert acceptance.chances([[one], [three]]) == pytest.approx([0.25 / 2.25, 1 / 2.25])  # only one can be right
    acceptance.chances([[one, two]])
    for _ in range(300):
        acceptance.learn([(one.evidence, two.evidence)], 0)
        acceptance.learn([(one.evidence,)], None)
        acceptance.learn([(one.evidence,), (three.evidence,)], 1)
    assert acceptance.chances([[one, two]])[0] > 0.9
    assert acceptance.chances([[one], [three]])[1] > 0.9
    assert acceptance.chances([[one]])[0] < 0.2  # it was wrong by itself, whatever it says beside others
    assert sum(acceptance.chances([[one], [two], [three]])) < 1


def test_calibration_is_learned() -> None:
    calibration = Calibration()
    for number in range(300):
        calibration.learn(0.125, number % 2 == 0)
    assert calibration(0.125) == pytest.approx(0.5, abs=0.05) and calibration(1e-6) <= 0.01


def test_shapes_are_followed_whatever_the_words() -> None:
    """Punctuation in the spelling of other members; no words. What was learned holds for other outputs."""
    words = TextVocabulary()
    drafter = ShapeDrafter(words)
    written = '{"name":"Ada","age":36,"town":"Paris","size":7,"'
    for text, expected in ((written + "ab", '":"'), ('{"key', '":"'), ('{"key":"val', '","'), ('{"key":1', ',"')):
        source = drafter.start([1], output(words))
        source.extend(list(text.encode()))
        at, read = node((ord(text[-1]),)), ""
        source.prepare(at, 12)
        while len(read) < len(expected):
            best = max(source.propose(at), key=lambda proposal: proposal.prior)
            read += chr(best.token)
            child = at.child(best.token)
            assert child is not None
            at = child
        assert read == expected, text


def test_the_end_is_drafted_where_the_budget_ends() -> None:
    words = TextVocabulary()
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    written = Output(words, compile_json_schema(schema, words).matcher(), GREEDY, max_new_tokens=12)
    for token in b'{"a":"xy':
        written.take(token, 0.0, None, 0)
    source = ClosingDrafter().start([1], written)

    def drafted(text: str) -> str:
        assert written.matcher is not None
        at, read = node((ord("y"),), written.matcher.copy()), ""
        source.prepare(at, 12)
        for byte in text.encode():
            source.propose(at)
            at = at.child(byte) or at
        while proposals := source.propose(at):
            read += chr(proposals[0].token)
            at = at.child(proposals[0].token) or at
        return read

    assert drafted("") == drafted("z") == drafted("zz") == '"}'
    assert ClosingDrafter().start([1], output(words)).propose(node((1,))) == []


def test_names_of_drafts_are_those_of_their_makers() -> None:
    tokenizer = CharTokenizer()
    words = vocabulary()
    model = TinyModel(words.size)
    for name, maker in MAKERS.items():
        if name != "layer_skip":  # needs a transformers model
            assert maker(model, tokenizer, words).name == name
    assert set(AUTO) < set(MAKERS) and ("auto", *MAKERS) == NAMES
