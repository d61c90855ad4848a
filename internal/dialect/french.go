package dialect

import (
	"fmt"
	"regexp"
	"strings"
)

// byteOf says where something is that cannot be read, behind the decoder's own words.
var byteOf = regexp.MustCompile(` at byte (\d+) of the object$`)

// inFrench says in French what is told of a reply's form; what it does not know stays as it is, and
// a test knows of it.
func inFrench(said string) string {
	if french, ok := frenchPhrases[said]; ok {
		return french
	}
	for _, p := range frenchPatterns {
		if rest, ok := strings.CutPrefix(said, p.before); ok {
			if middle, ok := strings.CutSuffix(rest, p.after); ok {
				return p.frenchBefore + middle + p.frenchAfter
			}
		}
	}
	return byteOf.ReplaceAllString(said, " à l'octet $1 de l'objet")
}

// frenchPatterns are the phrases with something in them that a model wrote, or that is a name.
var frenchPatterns = []struct{ before, after, frenchBefore, frenchAfter string }{
	{"", ", which is no command", "", ", qui n'est pas une commande"},
	{"the action ", "", "l'action ", ""},
	{"the query ", "", "la requête ", ""},
	{"the text ", "", "le texte ", ""},
	{"the number ", "", "le nombre ", ""},
	{"a tool call of ", "", "un appel d'outil de ", ""},
	{"one of the fields ", "", "l'un des champs ", ""},
	{"use the field ", "", "utilise le champ ", ""},
	{"write ", "", "écris ", ""},
	{"", " bytes", "", " octets"},
}

var frenchPhrases = map[string]string{
	fmt.Sprintf("at most %d commands", maxCommands): fmt.Sprintf("au plus %d commandes", maxCommands),
	fmt.Sprintf("%d to %d options", minOptions, maxOptions): fmt.Sprintf("de %d à %d options", minOptions,
		maxOptions),
	fmt.Sprintf("objects and lists at most %d deep", maxDepth): fmt.Sprintf(
		"des objets et listes imbriqués de %d niveaux au plus", maxDepth),

	"a list of commands": "une liste de commandes",
	"more":               "davantage",
	"strict JSON":        "du JSON strict",
	"something else":     "autre chose",
	`an object {"type": …, "params": {…}}`: `un objet {"type": …, "params": {…}}`,
	`an object {"type": …, "data": {…}}`:   `un objet {"type": …, "data": {…}}`,
	`an object {"steps": […]}`:             `un objet {"steps": […]}`,
	"the name of a command":                "le nom d'une commande",
	"an object":                            "un objet",
	"a list":                               "une liste",
	"a text":                               "un texte",
	"nothing":                              "rien",
	"type and params alone":                "type et params seuls",
	"type and data alone":                  "type et data seuls",
	"message alone":                        "message seul",
	"a field that does not exist":          "un champ qui n'existe pas",
	"a command":                            "une commande",
	"a query":                              "une requête",
	"an action":                            "une action",
	"put it into action_commands":          "mets-la dans action_commands",
	"put it into data_commands":            "mets-la dans data_commands",
	"no question here":                     "pas de question ici",
	"one":                                  "une",
	"nobody can be asked: decide yourself, and say what you assumed": "personne ne peut répondre : décide toi-même, et dis ce que tu as supposé",
	`"MultipleChoice" or "Validation"`:                               `"MultipleChoice" ou "Validation"`,
	"a valid question":                                               "une question valable",
	"question, options, allow_multiple, allow_free_text":             "question, options, allow_multiple, allow_free_text",
	"a list of texts":                                                "une liste de textes",
	"a question without options is a Validation":                     "une question sans options est une Validation",
	"a question that is answered with yes or no is a Validation":     "une question à laquelle on répond par oui ou non est une Validation",
	"a text: what the person reads":                                  "un texte : ce que lit la personne",
	"either data_commands or action_commands":                        "soit data_commands, soit action_commands",
	"both": "les deux",
	"ask first, and act when the results are here":           "demande d'abord, et agis quand les résultats sont là",
	"a question in a reply without commands":                 "une question dans une réponse sans commandes",
	"one beside commands":                                    "une à côté de commandes",
	"ask first, or run the commands first":                   "pose d'abord la question, ou exécute d'abord les commandes",
	"completed in a reply without commands":                  "completed dans une réponse sans commandes",
	"it beside commands":                                     "ce champ à côté de commandes",
	"say it when their results are here":                     "dis-le quand leurs résultats sont là",
	"completed in a reply without a question":                "completed dans une réponse sans question",
	"it beside communication_module":                         "ce champ à côté de communication_module",
	"wait for the answer first":                              "attends d'abord la réponse",
	"it only beside action_commands":                         "ce champ seulement à côté d'action_commands",
	"it without them":                                        "ce champ sans elles",
	"a text that is not empty":                               "un texte qui n'est pas vide",
	"an empty one":                                           "un texte vide",
	"true or false":                                          "true ou false",
	"no completed here":                                      "pas de completed ici",
	"it":                                                     "ce champ",
	"your answer ends the work":                              "ta réponse termine le travail",
	"no plan here":                                           "pas de plan ici",
	"commands inside the JSON object":                        "des commandes dans l'objet JSON",
	"a reply of at most 32 MiB":                              "une réponse de 32 Mio au plus",
	"one JSON object":                                        "un objet JSON",
	"thinking that does not end":                             "une réflexion qui ne se termine pas",
	"two or more":                                            "deux ou davantage",
	"one whole JSON object":                                  "un objet JSON entier",
	"text without any":                                       "du texte sans objet",
	"each key once":                                          "chaque clé une seule fois",
	"it stands twice in its object":                          "une clé qui figure deux fois dans son objet",
	"close it with </think>, and write the object behind it": "termine-la par </think>, et écris l'objet derrière",
	"put everything into one object, or send the next one when the results of this one are here": "mets tout dans un seul objet, ou envoie le suivant quand les résultats de celui-ci sont là",
	"one that is cut off, or whose brackets or quotation marks do not close":                     "un objet coupé, ou dont les accolades ou les guillemets ne se ferment pas",
	"keep it shorter if it was too long, and escape every quotation mark inside a string":        "fais plus court s'il était trop long, et échappe chaque guillemet à l'intérieur d'une chaîne",
	`what you say to the person is the string pre_text: {"pre_text":"…"}`:                        `ce que tu dis à la personne est la chaîne pre_text : {"pre_text":"…"}`,
}
