# SPDX-License-Identifier: Apache-2.0
"""Words of column names that say what a column holds: people's names and numbers, places, amounts, or codes.

One list for the library, the command line and ``sfumato init``. A name alone decides nothing: :mod:`judging` looks at
the values, too.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Direct identifiers. Their values are text, or numbers of many digits.
DIRECT = _words(
    "email emails mail emailaddress phone telephone phonenumber phoneno telefon mobile mobilephone cellphone fax "
    "ssn socialsecurity socialsecuritynumber nino nhsnumber bsn svnr steuernummer taxid iban accountnumber "
    "creditcard cardnumber passport passportnumber licenseplate licenceplate numberplate vin imei imsi macaddress "
    "ipaddress ip username login screenname nickname"
)
#: Names of people, where the values are text.
NAMES = _words(
    "name names fullname surname lastname firstname forename givenname familyname middlename maidenname vorname "
    "nachname familienname nom prenom nombre apellido apellidos nome cognome naam achternaam voornaam personname "
    "customername patientname clientname membername employeename studentname username ownername holdername "
    "contactname borrowername applicantname mothername fathername spousename legalname"
)
#: Addresses, where the values are text.
ADDRESSES = _words("address addr street streetaddress homeaddress postaladdress strasse streetname addressline adresse")
#: Free text about people, where the values are text.
REMARKS = _words(
    "remark remarks comment comments note notes freetext narrative bemerkung bemerkungen kommentar anmerkung "
    "kommentare anmerkungen notiz notizen freitext remarque remarques commentaire commentaires observaciones"
)
#: Numbers of people and households by themselves, and of records.
PERSON_KEYS = _words("pid uid uuid guid serialno serialnumber mrn hhid idhh persnr personnummer idno idnr")
RECORD_KEYS = _words("id ids oid rowid recordid key pk serial lfdnr recno recnum seqno hadmid icustayid")
_PEOPLE = (
    "person|people|pers|customer|cust|client|member|memb|patient|user|usr|account|acct|acc|household|hh|family|fam|"
    "employee|empl|emp|staff|student|pupil|voter|citizen|subject|subj|respondent|resp|participant|borrower|applicant|"
    "insured|holder|policyholder|tenant|donor|driver|owner|seller|buyer|subscriber|guest|passenger|inmate|veteran|"
    "taxpayer|resident|individual|indiv|beneficiary|bene|contact|profile|visitor|device|card|passport|licen[cs]e|"
    "policy|contract|serial|registration|national|tax|fiscal|insurance|health|medicare|medicaid"
)
_RECORDS = (
    "claim|case|record|rec|row|line|order|invoice|ticket|transaction|trans|txn|encounter|visit|admission|episode|stay|"
    "sample|specimen|sequence|seq|file|application|loan|booking|reservation|session|document|doc|entry|unique|"
    "observation|obs"
)
_NUMBER = "(id|ids|no|nr|num|number|key|uid|guid|uuid|identifier)"
_PERSON_KEY = re.compile(rf"(.*)({_PEOPLE}){_NUMBER}")
_RECORD_KEY = re.compile(rf"(.*)({_RECORDS}){_NUMBER}")
_FRAME_INDEX = re.compile(r"__index_level_\d+__|Unnamed: \d+")  # how pandas writes the index of a frame to files

#: Places and dates, which describe people: many distinct values, but not names of people.
PLACES = _words(
    "zip zipcode zip5 zip3 plz postcode postalcode postal city town place municipality county district region state "
    "country community tract block blockgroup puma commune gemeinde village neighborhood neighbourhood birthplace "
    "station"
)

#: Amounts, counts and measures, whatever their values look like.
AMOUNTS = _words(
    "income inc incomes earnings salary wage wages pay payment payments pymnt amount amt amnt sum total balance bal "
    "price cost costs fee fees revenue sales turnover budget debt loan tax taxes value val gain gains loss losses "
    "dividend dividends profit rent mortgage premium deposit limit weight weights wgt fnlwgt pwgtp wgtp population "
    "pop score points index rate ratio pct percent percentage share area sqft distance dist km miles duration "
    "seconds minutes hours hour days weeks months mths years yrs year age agep ages count counts num number nb n "
    "qty quantity size length len height width depth dose bmi pressure temperature level levels util utilization "
    "pincp wagp perp intp retp ssip semp oip pap hincp fincp povpip wkhp wkwn wkw jwmnp jwap jwdp sporder np grntp "
    "valp adjinc adjhsg wageperhour hoursperweek capitalgain capitalloss schl grade rating rank stage education edu "
    "educ"
)
#: Of these, an ending of a longer word is enough: ``annualincome``, ``totalamt``.
_AMOUNT_ENDINGS = ("income", "salary", "wage", "wages", "amount", "amt", "balance", "price", "cost", "wgt", "weight")

#: Codes: numbers that stand for something and cannot be averaged.
CODES = PLACES | _words(
    "code codes cd recode type types kind class category cat group cluster segment race racial ethnicity ethnic "
    "hispanic sex gender marital relationship religion language nationality citizenship origin ancestry occupation "
    "occup job profession industry employer sector naics sic soc isco nace mcc icd icd9 icd10 cpt drg ndc diagnosis "
    "diag procedure fips geoid msa cbsa department dept branch store product channel source reason cause purpose "
    "status disposition mode method"
)
#: Codes of the American Community Survey and its like, whose names are not words.
SURVEY_CODES = _words(
    "rac1p rac2p rac3p race1 hisp cit eng fod1p fod2p mar esr indp occp naicsp socp cow jwtrns jwtr migsp migpuma "
    "powpuma powsp mil relp relshipp pobp anc anc1p anc2p lanp st division esp mig waob qtrbir vps dratx nwab nwav "
    "nwla nwlk nwre wrk hht hht2 ten bld lngi sch schg sfn sfr dis dear deye drem dphy dout ddrs nativity fer lanx "
    "hicov privcov"
)
_COUNT_FIRST = _words("num number n no nb count total sum avg mean min max")
_CODE_LAST = _words("code codes cd recode type class category cat")
_KIND_LAST = _words("type types kind kinds class category length count")  # a code of a name, such as Soundex, is one


def words_of(name: str) -> list[str]:
    """Return the words of a name in lower case, without accents.

    Examples
    --------
    >>> words_of("householdId"), words_of("E-Mail (privat)")
    (['household', 'id'], ['e', 'mail', 'privat'])
    >>> words_of("Straße")
    ['strasse']
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", plain)
    return re.findall(r"[a-z0-9]+", plain.casefold())  # which makes ss of the German sharp s


def _matches(words: list[str], listed: frozenset[str]) -> bool:
    """Return True if one word, two that follow each other, or all of them together are listed."""
    pairs = ("".join(pair) for pair in pairwise(words))
    return any(word in listed for word in (*words, *pairs, "".join(words)))


def is_direct_identifier(name: str) -> bool:
    """Return True if a name is that of an email address, a phone or social security number or the like."""
    return _matches(words_of(name), DIRECT)


def is_persons_name(name: str) -> bool:
    """Return True if a name is that of people's names; ``product_name`` and ``surname_type`` are not.

    Examples
    --------
    >>> [is_persons_name(name) for name in ("name", "last_name", "CustomerName", "product_name", "surname_type")]
    [True, True, True, False, False]
    """
    words = words_of(name)
    if words and words[-1] in _KIND_LAST:
        return False
    joined = "".join(words)
    own = [word for word in words if word in NAMES and word not in ("name", "names")]
    pairs = {"".join(pair) for pair in pairwise(words)}
    return bool(own) or joined in NAMES or bool(pairs & NAMES)


def is_address(name: str) -> bool:
    """Return True if a name is that of street addresses; ``addr_state`` is not."""
    words = words_of(name)
    return _matches(words, ADDRESSES) and not _matches(words, PLACES) and "type" not in words


def is_remark(name: str) -> bool:
    """Return True if a name is that of free text, such as remarks."""
    return _matches(words_of(name), REMARKS)


def is_person_key(name: str) -> bool:
    """Return True if a name is that of a person's, household's or account's number.

    Examples
    --------
    >>> [is_person_key(name) for name in ("SERIALNO", "household_id", "custNo", "education-num", "order_id")]
    [True, True, True, False, False]
    """
    words = words_of(name)
    joined = "".join(words)
    return (
        joined in PERSON_KEYS
        or joined == "hh"
        or (bool(words) and words[-1] in PERSON_KEYS)
        or bool(_PERSON_KEY.fullmatch(joined))
    )


def is_record_key(name: str) -> bool:
    """Return True if a name is that of a record's number, or ends in ``id``, whatever it is the number of.

    Examples
    --------
    >>> [is_record_key(name) for name in ("id", "order_id", "rowNumber", "state_id", "period", "education-num")]
    [True, True, True, True, False, False]
    """
    words = words_of(name)
    joined = "".join(words)
    if _FRAME_INDEX.fullmatch(name):
        return True
    is_number = bool(words) and words[-1] in ("id", "ids", "key", "nr", "no", "identifier")
    return is_number or joined in RECORD_KEYS or bool(_RECORD_KEY.fullmatch(joined))


def is_place(name: str) -> bool:
    """Return True if a name is that of a place, such as a postal code."""
    return _matches(words_of(name), PLACES)


def is_amount_name(name: str) -> bool:
    """Return True if a name is that of an amount, a count or a measure.

    Examples
    --------
    >>> [is_amount_name(name) for name in ("annual_inc", "PINCP", "num_persons", "income_code", "occupation")]
    [True, True, True, False, False]
    """
    words = words_of(name)
    if not words or words[-1] in _CODE_LAST:
        return False
    return (
        any(word in AMOUNTS or word.endswith(_AMOUNT_ENDINGS) for word in words)
        or words[0] in _COUNT_FIRST
        or "".join(words) in AMOUNTS
    )


def is_code_name(name: str) -> bool:
    """Return True if a name is that of a code.

    Examples
    --------
    >>> [is_code_name(name) for name in ("RAC1P", "occupation_code", "zip", "class_size", "age")]
    [True, True, True, False, False]
    """
    words = words_of(name)
    return not is_amount_name(name) and (_matches(words, CODES) or "".join(words) in SURVEY_CODES)


def as_read(name: str) -> str:
    """Return a name as a person reads it: without case, blanks and what no screen shows.

    Examples
    --------
    >>> as_read("age ") == as_read("Age"), as_read("age") == as_read("age_")
    (True, False)
    """
    plain = unicodedata.normalize("NFKC", name).casefold()
    return "".join(c for c in plain if not c.isspace() and unicodedata.category(c) not in ("Cc", "Cf"))
