package demo

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// intent is a kind of request: what matches its pattern is answered by its plan.
type intent struct {
	plan    func(*thread, parts) reply
	pattern string
}

// parts are the parts of a request by the names of the pattern's groups: path, to, text, old, new.
type parts map[string]string

// Intents are tried in their order, and the first that matches is taken.
var englishIntents = []intent{
	{(*thread).showHelp, `hello|hi|hey|help|help me|(?:who|what) are you|are you an? .+|what can (?:you|i) do.*`},
	{(*thread).listFiles, `(?:list|ls)(?: all)?(?: the| my)?(?: files)?(?: here|(?: in| of)? {place})?`},
	{(*thread).listFiles, `(?:show me the|show the|what|which) files(?: are)?(?: there)?(?: here|(?: in| of) {place})?`},
	{(*thread).listFiles, `(?:what is|what's) (?:here|in {folder})|(?:read|show|open) {place}/`},
	{(*thread).summariseTexts, `read (?:every|each) (?:text|note|file) (?:of|in) {place} and ` +
		`write a (?:one-line |short )?summary of each (?:to|into|in) {to}`},
	{(*thread).summariseTexts, `(?:summari[sz]e|(?:(?:write|make|give me) )?a (?:one-line |short )?summary of)` +
		`(?: (?:every|each|all)(?: the)?)?(?: (?:text|note|file)s?)?(?: of| in)? {place}(?: (?:to|into|in) {to})?`},
	{(*thread).readFile, `(?:read|show|show me|open|cat|what is in|what's in) {name}|what does {name} say`},
	{(*thread).searchText, `(?:search for|search|look for|find)(?: the (?:word|text))? {query}(?: in {place})?` +
		`(?:,? and (?:write|save) (?:it|the results?) (?:to|into) {to})?|which files (?:mention|contain) {query}`},
	{(*thread).createFile, `(?:write|save|put) {text} (?:to|into|in) {file}|write (?:to|into) {file} ?: ?{rest}`},
	{(*thread).createFile, `(?:write|create)(?: an?)?(?: new)?(?: file)?(?: called)? {file} (?:with|containing) {text}`},
	{(*thread).appendText, `(?:append|add) {text} to {file}|(?:append|add) to {file} ?: ?{rest}`},
	{(*thread).replaceText, `(?:replace|change)(?: the (?:word|text))? {old} (?:by|with|to) {new} in {name}|` +
		`in {name},? (?:replace|change) {old} (?:by|with|to) {new}`},
	{(*thread).deleteFile, `(?:delete|remove|erase) {name}`},
	{(*thread).countLines, `(?:count|how many)(?: the)? lines(?: of| in| are in| does| has)? {name}(?: have)?`},
	{(*thread).runCommand, `(?:run|execute) {command}|(?:run|execute) the command ?:? ?{rest}`},
}

var frenchIntents = []intent{
	{(*thread).showHelp, `bonjour|salut|coucou|aide|aide-moi|qui es-tu|es-tu une? .+|que (?:peux|sais)-tu faire.*`},
	{(*thread).listFiles, `(?:liste|montre|montre-moi|affiche)(?: tous)? les fichiers(?: ici|(?: de| dans| du) {place})?`},
	{(*thread).listFiles, `liste[rz]? {place}|quels fichiers (?:y a-t-il|il y a)(?: ici| dans {place})?`},
	{(*thread).listFiles, `qu'(?:y a-t-il|est-ce qu'il y a) (?:ici|dans {folder})|(?:lis|montre|ouvre) {place}/`},
	{(*thread).summariseTexts, `lis chaque (?:texte|note|fichier) (?:de|dans) {place} et ` +
		`écris un résumé(?: d'une ligne)? de chacune? (?:dans|vers) {to}`},
	{(*thread).summariseTexts, `(?:résume[rz]?|(?:écris|fais|fais-moi) un résumé(?: d'une ligne)? de)` +
		`(?: (?:chaque|les|tous les))?(?: (?:texte|note|fichier)s?)?(?: de| dans)? {place}(?: (?:dans|vers) {to})?`},
	{(*thread).readFile, `(?:lis|lire|lisez|montre|montre-moi|affiche|ouvre|qu'y a-t-il dans|que dit) {name}`},
	{(*thread).searchText, `(?:cherche|chercher|recherche|trouve)(?: le (?:mot|texte))? {query}(?: dans {place})?` +
		`(?:,? (?:et|puis) écris(?:-les?| les? résultats?) (?:dans|à) {to})?|quels fichiers contiennent {query}`},
	{(*thread).createFile, `(?:écris|écrire|écrivez|mets) {text} (?:dans|à) {file}|écris dans {file} ?: ?{rest}`},
	{(*thread).createFile, `(?:écris|crée)(?: un)?(?: nouveau)?(?: fichier)?(?: nommé)? {file} (?:avec|contenant) {text}`},
	{(*thread).appendText, `ajoute[rz]? {text} (?:à|au|dans) {file}|ajoute[rz]? (?:à|au|dans) {file} ?: ?{rest}`},
	{(*thread).replaceText, `remplace[rz]?(?: le (?:mot|texte))? {old} par {new} dans {name}|` +
		`dans {name},? remplace[rz]? {old} par {new}`},
	{(*thread).deleteFile, `(?:supprime[rz]?|efface[rz]?) {name}`},
	{(*thread).countLines, `(?:compte[rz]? les|combien de) lignes(?: y a-t-il dans| dans| de| a)? {name}`},
	{(*thread).runCommand, `(?:exécute[rz]?|lance[rz]?) {command}|(?:exécute[rz]?|lance[rz]?) la commande ?:? ?{rest}`},
}

var (
	intents  = slices.Concat(englishIntents, frenchIntents)
	patterns = sync.OnceValue(func() (out []*regexp.Regexp) {
		for _, one := range intents {
			out = append(out, compilePattern(one.pattern))
		}
		return out
	})
)

// maxRequest bounds the text that the patterns read, in bytes.
const maxRequest = 16 << 10

// suffixed matches a French verb with a pronoun behind it: supprime-le.
var suffixed = regexp.MustCompile(`^(\pL+)-l[ea]\b`)

// findIntent finds the plan for a message; plan is nil where no pattern matches. Only the first
// paragraph can ask for something: a client appends standard input behind it, and that is data.
func findIntent(message string) (plan func(*thread, parts) reply, asked parts, french bool) {
	message = suffixed.ReplaceAllString(firstParagraph(message), "$1 it")
	if len(message) > maxRequest {
		return nil, nil, false
	}
	for i, pattern := range patterns() {
		match := pattern.FindStringSubmatch(message)
		if match == nil {
			continue
		}
		asked = parts{}
		for i, name := range pattern.SubexpNames() {
			if match[i] != "" && name != "" {
				asked[strings.TrimRight(name, "0123456789")] = trimQuotes(match[i])
			}
		}
		asked["path"] = path.Clean(asked["path"])
		return intents[i].plan, asked, i >= len(englishIntents)
	}
	return nil, nil, false
}

func firstParagraph(message string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(message, "\r\n", "\n")), "\n\n")
	return first
}
