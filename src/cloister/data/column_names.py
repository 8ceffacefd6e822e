"""What the name of a column suggests about its role. Names are public, so they may be read freely."""

from __future__ import annotations

import re

_PERSON = (
    "applicant|borrower|child|citizen|client|contact|customer|donor|employee|holder|household|individual|member|owner"
    "|participant|passenger|patient|person|respondent|staff|student|subject|subscriber|teacher|user|visitor|voter|worker"
)

IDENTIFIERS = {
    "a user name": r"user ?name|login|nick ?name|handle|screen ?name",
    "a person's name": rf"name|((first|last|middle|full|given|family|maiden|birth|{_PERSON}) ?names?)|surname|forename"
    r"|vorname|nachname|nombres?|apellidos?|pr[eé]nom|soyad\w?|ad soyad|isim",
    "an e-mail address": r"(.* )?(e ?mail|eposta)( address)?",
    "a phone number": r"(.* )?(phone|telephone|mobile|cell ?phone|fax|telefon|tel)( number| no| nr)?",
    "a device or vehicle number": r"(.* )?(ip|ip address|mac|mac address|imei|imsi|vin|licen[cs]e plate|plate( number"
    r"| no)?|serial( number| no)?|device id|cookie( id)?)",
    "a street address": r"(.* )?(street|address|adre[s]+e?|direcci[oó]n)( line)?( \d)?",
    "a national identity number": r"(.* )?(ssn|social security( number| no)?|national (id|insurance)( number| no)?|nino"
    r"|nhs( number| no)?|tc ?kimlik( no)?|steuer ?id|dni|nie|personnummer|bsn|pesel|cpf|hetu|nir|tax id|passport"
    r"( number| no)?|driver s? ?licen[cs]e( number| no)?)",
    "an account or card number": r"(.* )?(iban|account( number| no| nr| id)?|(credit ?)?card( number| no| nr)|pan)",
    "a record number": rf"id|uid|uuid|guid|mrn|((({_PERSON}|medical|record|case|chart|admission|visit|encounter|row"
    r"|insurance|policy)( record)?) ?(id|uid|uuid|guid|key|code|number|no|nr|ref|reference))|record",
}
SUBJECT = rf"(({_PERSON})( record)?) ?(id|uid|uuid|guid|key|code|number|no|nr)|mrn"

SENSITIVE = (
    r"disease|diagnos[ie]s|diagnosis code|icd( ?\d+)?|illness|condition|symptoms?|treatment|therapy|medications?|drugs?"
    r"|prescriptions?|hiv|aids|cancer|lab|test results?|result|blood( type)?|allerg(y|ies)|disabilit(y|ies)|mental"
    r"|pregnan(t|cy)|genetic|genotype|cause of death|death|outcome|smok(er|ing)|alcohol|bmi|cholesterol|glucose"
    r"|salar(y|ies)|incomes?|wages?|earnings|pay|bonus|debts?|loans?|credit( score)?|balance|mortgage|wealth|capital"
    r"|religion|belief|faith|politic(s|al)|party|votes?|sexual|orientation|union|crimes?|offenses?|offences?|convictions?"
    r"|arrests?|grades?|gpa|scores?|marks?|charge|cost"
)
QUASI = (
    r"ages?|birth|born|dob|birth ?(date|day|year|place)|year of birth|zip|zip ?codes?|post ?(al)?( ?code)?|plz|sex"
    r"|gender|race|ethnicity|ethnic|nationality|citizenship|country|native|region|state|province|county|city|town|village"
    r"|district|municipality|neighbou?rhood|location|latitude|longitude|lat|lon|lng|marital|relationship|married"
    r"|education|degree|school|university|occupation|job|profession|employer|work|workclass|industry|position"
    r"|language|height|weight|children|household|family|hours|admission|discharge|visit|date|hospital|ward"
)
PLACES = r"location|coordinates?|gps|geo|geometry|position|point|latlon|latlng"
CODES = r"codes?|zip|zip ?codes?|post ?(al)?( ?code)?|plz|id|type|class|category|group|flag|icd( ?\d+)?|status|level"


def plain_name(name: str) -> str:
    """Return a column's name as lower-case words: ``patientID`` and ``patient_id`` are both ``patient id``."""
    split = re.sub(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return " ".join(re.findall(r"\w+", split.replace("_", " ").lower()))


def is_called(name: str, pattern: str) -> bool:
    """Return whether a whole name is as a pattern says."""
    return re.fullmatch(pattern, plain_name(name)) is not None


def mentions(name: str, pattern: str) -> bool:
    """Return whether a pattern's words are among those of a name."""
    return re.search(rf"\b(?:{pattern})\b", plain_name(name)) is not None


def identifier_by_name(name: str) -> str | None:
    """Return what kind of identifier a name announces, if any."""
    return next((kind for kind, pattern in IDENTIFIERS.items() if is_called(name, pattern)), None)
