package demo

import (
	"path"
	"strings"
	"unicode"
)

// set is a set of lower-case words.
type set map[string]bool

func words(list string) set {
	out := set{}
	for word := range strings.FieldsSeq(list) {
		out[word] = true
	}
	return out
}

// The words that the rules know, of both languages.
var (
	listing = words("list ls dir tree liste lister listez listes énumère énumérer enumere")
	reading = words(`read show open cat print display view lis lire lisez montre montrer montrez montre-moi ouvre ouvrir ouvrez affiche afficher affichez
		tell say says dit disent raconte parle parle-moi dis dis-moi`)
	writing     = words("write save put create make écris écrire écrivez ecris ecrire mets mettre mettez crée créer créez cree enregistre enregistrer note noter notez")
	appending   = words("append add ajoute ajouter ajoutez rajoute rajouter")
	overwriting = words("overwrite replace écrase écraser écrasez remplace remplacer remplacez ecrase")
	editing     = words(`replace change swap substitute correct fix edit rename turn update
		remplace remplacer remplacez change changer changez corrige corriger corrigez modifie modifier modifiez renomme renommer substitue`)
	deleting = words(`delete remove erase trash rm del drop
		supprime supprimer supprimez efface effacer effacez enlève enlever enlevez enleve retire retirer retirez`)
	searching = words(`search find grep look locate where mention mentions mentioning contain contains containing
		cherche chercher cherchez recherche rechercher recherchez trouve trouver trouvez où contient contiennent mentionne mentionnent`)
	counting  = words("count many combien compte compter comptez")
	asking    = words("what what's which qu que quels quelles quel quelle")
	files     = words("file files fichier fichiers")
	lineWord  = words("line lines ligne lignes")
	wordWord  = words("word words mot mots")
	whole     = words("all every everywhere each both tout tous toute toutes partout chaque")
	results   = words("result results list lines hits answer findings it that them résultat résultats liste réponse ça cela")
	pronouns  = words("it that this same le la ce cette celui-ci celle-ci lui même")
	recursive = words("recursively recursive everything récursivement récursif tree arborescence subdirectories subfolders sous-dossiers")

	// What may stand between two things to do.
	joining = words("now maintenant and then also next afterwards finally after & et puis ensuite alors aussi enfin après please s'il te vous plaît plait stp svp")

	// What may stand before the name of a place, and between the two.
	source  = words("in from of inside under within dans de du depuis sous d des")
	target  = words("to into onto vers à")
	fillers = words("the my our this a an file files folder directory called named le la les l mon ma mes un une fichier dossier répertoire nommé appelé note notes text")
	// What is never the name of a place.
	nowhere = words(`here it them each every all this that me you us workspace project there note text line lines summary one order general total
		ici lui eux elle elles chaque chacun chacune tout tous toute toutes ce cet cette ces moi toi projet texte ligne lignes résumé une un`)

	// What tells the languages apart.
	english = words(`the a an in into of to each every all file files read write list show append add what which can you and me my is it please
		hello hi help summary summarise summarize note notes line with this that do did have by delete remove replace change find search where how many
		count undo why who are does about contents content its tell say says thanks thank look open it's words lines`)
	french = words(`le la les un une de des du dans à chaque tous toutes fichier fichiers lis lire écris écrire ecris liste montre affiche ajoute
		que quels quelles peux tu vous et moi mon ma mes est bonjour salut aide résumé résume résumer s'il merci avec ce cette fais il y a qu d l au aux
		supprime efface remplace cherche trouve par combien compte annule annuler pourquoi as fait qui es où puis ensuite mots lignes ouvre corrige change
		prends appeler souviens-toi rappelle-toi retiens renomme en quel quelle comment est-ce ne pas suis tout modifie contenu sur dit dis parle montre-moi enlève retire quoi coucou bonsoir`)
)

// token is a word of a request, or a quoted piece of it.
type token struct {
	text   string
	word   string // the text in lower case; "" for a quoted piece
	quoted bool
	ends   bool // a mark follows that may end something to do: a comma, a full stop
	colon  bool // a colon follows
}

// closers are the ends of quotations by their beginnings.
var closers = map[rune]rune{'"': '"', '“': '”', '«': '»', '`': '`', '\'': '\'', '‘': '’', '„': '“'}

// tokens cuts a request into words and quotations. An apostrophe inside a word (it's, d'une) quotes
// nothing.
func tokens(request string) []token {
	var out []token
	runes := []rune(request)
	for i := 0; i < len(runes); {
		// nothing, quoted
		if i+1 < len(runes) && (i == 0 || !letter(runes[i-1])) && runes[i] != '\'' && runes[i] != '`' &&
			closers[runes[i]] == runes[i+1] {
			out = append(out, token{quoted: true})
			i += 2
			continue
		}
		if end := quotation(runes, i); end > 0 {
			out = append(out, token{text: strings.TrimSpace(string(runes[i+1 : end])), quoted: true})
			i = end + 1
			continue
		}
		if unicode.IsSpace(runes[i]) {
			i++
			continue
		}
		from := i
		for i < len(runes) && !unicode.IsSpace(runes[i]) && (i == from || quotation(runes, i) == 0) {
			i++
		}
		text := string(runes[from:i])
		out = append(out, plainTokens(text)...)
		if n := len(out); n > 0 && text != "." && text != ".." {
			out[n-1].ends = out[n-1].ends || strings.ContainsAny(
				text[len(strings.TrimRight(text, ".,;:!?…)]}\"'”»’")):], ".,;!?…")
			out[n-1].colon = out[n-1].colon || strings.HasSuffix(text, ":")
		}
	}
	return out
}

// quotation returns the place of the mark that ends the quotation which begins at i, or 0 if none
// begins there.
func quotation(runes []rune, i int) int {
	closer, opens := closers[runes[i]]
	if !opens || i > 0 && letter(runes[i-1]) {
		return 0
	}
	for j := i + 1; j < len(runes); j++ {
		if runes[j] == closer && j > i+1 && (j+1 == len(runes) || !letter(runes[j+1])) {
			return j
		}
	}
	return 0
}

func letter(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// plainTokens makes tokens of what stands between two spaces: without the punctuation around it,
// and with the elided words of French (l'index, d'une) on their own.
func plainTokens(text string) []token {
	text = strings.TrimLeft(text, "([{\"'“«‘")
	if text != "." && text != ".." {
		text = strings.TrimRight(text, ".,;:!?…)]}\"'”»’")
	}
	if name := strings.TrimPrefix(text, "@"); isPath(name) { // a mention, see chat.Mentions
		text = name
	}
	if text == "" || text == "@" { // one whose name is quoted
		return nil
	}
	for _, elided := range []string{"l", "d", "qu", "s", "j", "n"} {
		for _, mark := range []string{"'", "’"} {
			if head := elided + mark; len(text) > len(head) && strings.EqualFold(text[:len(head)], head) {
				return append([]token{{text: elided, word: elided}}, plainTokens(text[len(head):])...)
			}
		}
	}
	return []token{{text: text, word: strings.ToLower(text)}}
}

// isPath reports whether a word looks like a path rather than like a word: notes/, notes/a.md,
// hello.txt.
func isPath(text string) bool {
	if strings.Contains(text, "://") || strings.Contains(text, "*") {
		return false
	}
	if strings.Contains(text, "/") {
		return text != "/" && strings.ContainsFunc(text, letter)
	}
	ext := path.Ext(text)
	if strings.Contains(text, "@") { // an address
		return false
	}
	return len(ext) > 1 && len(ext) <= 9 && len(text) > len(ext) && unicode.IsLetter(rune(ext[1])) &&
		!abbreviations[strings.ToLower(text)]
}

// isFrench compares how many words of each language stand in a request; where that does not tell,
// it is as before.
func isFrench(list []token, before bool) bool {
	balance := 0
	for _, t := range list {
		switch {
		case french[t.word] && !english[t.word]:
			balance++
		case english[t.word] && !french[t.word]:
			balance--
		case !t.quoted && !isPath(t.text) && french[mend(t.word)] && !english[mend(t.word)]: // a slip of the finger
			balance++
		case !t.quoted && !isPath(t.text) && strings.ContainsAny(t.word, "éèêàçùîô"):
			balance++
		}
	}
	return balance > 0 || balance == 0 && before
}
