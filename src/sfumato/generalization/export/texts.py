# SPDX-License-Identifier: Apache-2.0
"""All words of the form and of its preview, in English and in German.

A language is one `Texts`: a field per sentence, so that a missing one is an error where it is made and not on a page.
Numbers in sentences are per hundred people, and rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sfumato.arguments import check_choice
from sfumato.generalization.naming import ENGLISH as ENGLISH_PHRASES
from sfumato.generalization.naming import Phrases

Language = Literal["en", "de"]

ReasonName = Literal["needed", "helps", "required", "useless", "good enough", "not worth it", "forbidden", "screened"]


@dataclass(frozen=True)
class Reason:
    """Why an attribute is asked, or why it is not.

    Attributes
    ----------
    name : str
        ``"needed"``, ``"helps"`` or ``"required"`` for what is asked; ``"useless"``, ``"good enough"``,
        ``"not worth it"``, ``"forbidden"`` or ``"screened"`` for what is not.
    decisions : float, optional
        Share of decisions that would be wrong without it, or right with it.
    guesses : float, optional
        Share of personal details that an attacker would guess in addition.
    """

    name: ReasonName
    decisions: float = 0.0
    guesses: float = 0.0


@dataclass(frozen=True)
class Texts:
    """The words of one language."""

    language: Language
    phrases: Phrases
    title: str
    intro: str
    exact_shown: str
    exact_sent: str
    please_choose: str
    rather_not_say: str
    something_else: str
    counts_as: str
    others: str
    and_or: str
    yes: str
    no: str
    type_exact: str
    inputs: Mapping[str, str]
    in_utc: str
    show: str
    send: str
    following: str
    only_groups: str
    only_groups_of: str
    not_collected: str
    result_title: str
    result_note: str
    save: str
    generalization: str
    why: str
    settled: str
    question_of: str
    wrong: str
    expected: Mapping[str, str]
    preview_title: str
    preview_intro: str
    asked_title: str
    choices_title: str
    not_asked_title: str
    not_asked_intro: str
    nothing_left: str
    free_title: str
    free_text: str
    personal_text: str
    reasons: Mapping[ReasonName, str]
    per_hundred: str
    fewer_than_one: str

    def reason(self, reason: Reason) -> str:
        """Return a reason as a sentence or two."""
        words = self.reasons[reason.name]
        told = words.format(decisions=self._share(reason.decisions), guesses=self._share(reason.guesses))
        return told[:1].upper() + told[1:]

    def _share(self, share: float) -> str:
        percent = 100 * abs(share)
        if percent < 0.95:
            return self.fewer_than_one
        return self.per_hundred.format(f"{percent:.0f}")


_ENGLISH = Texts(
    language="en",
    phrases=ENGLISH_PHRASES,
    title="A few questions",
    intro="Every question asks for a range or a group, because nothing finer is needed.",
    exact_shown="If you type an exact value, it stays on this page: only its group is shown.",
    exact_sent="If you type an exact value, it stays on this page: only its group is sent.",
    please_choose="Please choose",
    rather_not_say="Rather not say",
    something_else="Something else",
    counts_as="(counts as: {})",
    others="{} others",
    and_or="or",
    yes="Yes",
    no="No",
    type_exact="Type the exact value instead",
    inputs={
        "date": "The exact date",
        "datetime": "The exact date and time",
        "time": "The exact time",
        "duration": "The exact length in seconds",
        "number": "The exact number",
        "category": "The exact answer",
    },
    in_utc=" in UTC",
    show="Show my answers",
    send="Send",
    following="Next question",
    only_groups="Only the groups you chose are used.",
    only_groups_of="Only the groups you chose are used; {} of {} attributes are not asked for.",
    not_collected="Not collected: {}.",
    result_title="Your answers",
    result_note="This is all there is. Nothing was sent anywhere.",
    save="Save as a file",
    generalization="Generalization {}",
    why="Why: {}",
    settled="No further answer can change the decision. {} of {} questions were enough.",
    question_of="Question {}, of at most {}",
    wrong="Expected {}.",
    expected={},
    preview_title="What you will be asked, and why",
    preview_intro="Questions: {asked}. Things that are not asked: {spared}.",
    asked_title="What you will be asked",
    choices_title="You choose one of these answers:",
    not_asked_title="What you will not be asked",
    not_asked_intro="These were looked at and left out.",
    nothing_left="Nothing was left out.",
    free_title="Your choice",
    free_text='You need not answer: every question has the choice "Rather not say".',
    personal_text="Questions end early when no further answer can change the decision. You may be asked less.",
    reasons={
        "needed": "Without this answer, {decisions} more of every 100 decisions would be wrong.",
        "helps": "This answer may make decisions a little better. The difference was too small to measure.",
        "required": "It has to be asked.",
        "useless": "In a test, decisions were no better with this answer.",
        "good enough": "Decisions are good enough without it. Knowing it would make {decisions} more of every 100 "
        "right.",
        "not worth it": "Knowing it would make {decisions} more of every 100 decisions right, but it would tell more "
        "about you than that is worth: someone who sees the answers could guess {guesses} more of every 100 personal "
        "details.",
        "forbidden": "It may not be asked.",
        "screened": "By itself, it says less about the decision than other things do.",
    },
    per_hundred="{}",
    fewer_than_one="fewer than 1",
)

_GERMAN = Texts(
    language="de",
    phrases=Phrases(
        at_most="bis {}",
        between="{} bis {}",
        at_least="{} und mehr",
        over_to="über {} bis {}",
        over="über {}",
        before="vor {}",
        span="{} bis {}",
        to_before="{} bis vor {}",
        or_later="ab {}",
        under="unter {}",
        to_under="{} bis unter {}",
        or_longer="ab {}",
        any_value="jeder Wert",
        decimal=",",
    ),
    title="Ein paar Fragen",
    intro="Jede Frage nennt Bereiche oder Gruppen, weil es genauer nicht nötig ist.",
    exact_shown="Einen genauen Wert können Sie eintippen: Er bleibt auf dieser Seite, angezeigt wird nur seine Gruppe.",
    exact_sent="Einen genauen Wert können Sie eintippen: Er bleibt auf dieser Seite, gesendet wird nur seine Gruppe.",
    please_choose="Bitte wählen",
    rather_not_say="Möchte ich nicht sagen",
    something_else="Etwas anderes",
    counts_as="(zählt als: {})",
    others="{} weitere",
    and_or="oder",
    yes="Ja",
    no="Nein",
    type_exact="Stattdessen den genauen Wert eintippen",
    inputs={
        "date": "Das genaue Datum",
        "datetime": "Das genaue Datum mit Uhrzeit",
        "time": "Die genaue Uhrzeit",
        "duration": "Die genaue Dauer in Sekunden",
        "number": "Die genaue Zahl",
        "category": "Die genaue Antwort",
    },
    in_utc=" in UTC",
    show="Meine Antworten zeigen",
    send="Senden",
    following="Nächste Frage",
    only_groups="Verwendet werden nur die Gruppen, die Sie gewählt haben.",
    only_groups_of="Verwendet werden nur die Gruppen, die Sie gewählt haben; {} von {} Angaben werden nicht erfragt.",
    not_collected="Nicht erfragt: {}.",
    result_title="Ihre Antworten",
    result_note="Das ist alles. Nichts wurde gesendet.",
    save="Als Datei speichern",
    generalization="Generalisierung {}",
    why="Warum: {}",
    settled="Keine weitere Antwort kann die Entscheidung ändern. {} von {} Fragen haben genügt.",
    question_of="Frage {}, von höchstens {}",
    wrong="Erwartet wird {}.",
    expected={
        "a number": "eine Zahl",
        "a finite number": "eine endliche Zahl",
        "a date such as 2024-05-31, or a date and a time": "ein Datum wie 2024-05-31, oder Datum und Uhrzeit",
        "a date and a time that exist": "ein Datum und eine Uhrzeit, die es gibt",
        "text such as 2024-05-31, or a Date": "ein Datum wie 2024-05-31",
        "a number of seconds": "eine Zahl von Sekunden",
        "a time such as 08:30": "eine Uhrzeit wie 08:30",
        "text": "Text",
        "true or false": "wahr oder falsch",
    },
    preview_title="Was Sie gefragt werden, und warum",
    preview_intro="Fragen: {asked}. Angaben, die nicht erfragt werden: {spared}.",
    asked_title="Was Sie gefragt werden",
    choices_title="Sie wählen eine dieser Antworten:",
    not_asked_title="Was Sie nicht gefragt werden",
    not_asked_intro="Diese Angaben wurden geprüft und weggelassen.",
    nothing_left="Nichts wurde weggelassen.",
    free_title="Ihre Wahl",
    free_text="Sie müssen nicht antworten: Bei jeder Frage können Sie „Möchte ich nicht sagen“ wählen.",
    personal_text="Die Fragen enden früher, wenn keine weitere Antwort die Entscheidung ändern kann. Dann werden Sie "
    "weniger gefragt als hier steht.",
    reasons={
        "needed": "Ohne diese Antwort wären {decisions} Entscheidungen mehr falsch.",
        "helps": "Diese Antwort macht Entscheidungen vielleicht etwas besser. Der Unterschied war zu klein, um ihn zu "
        "messen.",
        "required": "Diese Angabe muss erfragt werden.",
        "useless": "In einem Test waren Entscheidungen mit dieser Angabe nicht besser.",
        "good enough": "Auch ohne diese Angabe sind Entscheidungen gut genug. Mit ihr wären {decisions} Entscheidungen "
        "mehr richtig.",
        "not worth it": "Mit dieser Angabe wären {decisions} Entscheidungen mehr richtig. Sie würde aber mehr über Sie "
        "verraten, als das wert ist: Wer die Antworten sieht, könnte {guesses} persönliche Angaben mehr erraten.",
        "forbidden": "Diese Angabe darf nicht erfragt werden.",
        "screened": "Für sich allein sagt sie weniger über die Entscheidung als andere Angaben.",
    },
    per_hundred="{} von 100",
    fewer_than_one="weniger als 1 von 100",
)

LANGUAGES: dict[Language, Texts] = {"en": _ENGLISH, "de": _GERMAN}


def texts_of(language: Language) -> Texts:
    """Return the words of a language."""
    check_choice("language", language, tuple(LANGUAGES))
    return LANGUAGES[language]
