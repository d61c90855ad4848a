package demo

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// What can be talked about.
const (
	talkHello    = "hello"
	talkHelp     = "help"
	talkThanks   = "thanks"
	talkBye      = "bye"
	talkIdentity = "identity"
	talkUndo     = "undo"
	talkDid      = "did"
	talkChanged  = "changed"
	talkFiles    = "files"
	talkWhy      = "why"
	talkAll      = "all"     // delete everything
	talkNot      = "not"     // do not do it
	talkWhether  = "whether" // should I, what if
	talkUnable   = "unable"  // what no tool here can do
)

var undoing = words("undo revert rollback annule annuler annulez défais défaire défaites")

// topics are recognised by the words of a clause, in this order.
var topics = []struct {
	talk    string
	pattern *regexp.Regexp
}{
	{
		talkUndo,
		regexp.MustCompile(`^(?:how .*|can (?:i|you) .*|please |could .*|comment .*|peux.*|(?:est-ce que )?je peux .*|what if .*)?\b(?:undo|revert|roll ?back|annule|annuler|annulez|défais|défaire|take (?:it|that|this) back|revenir en arrière)(?:$|[^\pL])|(?:^|[^\pL])(?:restore|recover|bring back|get back|restaure|restaurer|récupère|récupérer)(?:$|[^\pL])`),
	},
	{
		talkAll,
		regexp.MustCompile(`^(?:please )?(?:delete|remove|erase|supprime|supprimer|efface|effacer) (?:absolutely )?(?:everything|all|all files|it all|all of it|tout|tous les fichiers)$`),
	},
	{talkWhy, regexp.MustCompile(`^(?:but |mais |and |et )?(?:why|how come|pourquoi)(?:$|[^\pL])`)},
	{
		talkChanged,
		regexp.MustCompile(`\b(?:what|which|anything).*\b(?:did you|have you|you|has|been|were|was|was it)\b.*\b(?:change|changed|write|written|wrote|modified|modify|edit|edited|delete|deleted|create|created)\b|^what changed|which changes|what changes|(?:qu|quoi|quels?|que|qu'est-ce que).*\b(?:as-tu|tu as|avez-vous|a été|ont été|t-il été)\b.*(?:chang|modifi|écri|suppr|effac|cré)|quels changements|qu'est-ce qui a changé|as-tu changé quoi`),
	},
	{
		talkFiles,
		regexp.MustCompile(`\b(?:which|what) files\b.*\b(?:did you|have you|you read|you use|touch)|^which files$|^quels fichiers$|quels fichiers.*(?:as-tu|tu as|avez-vous)`),
	},
	{
		talkDid,
		regexp.MustCompile(`\bwhat (?:did|have) you (?:just |already )?(?:do|done|been doing)|what happened|what was done|qu(?:'| )?(?:as-tu|est-ce que tu as|avez-vous|a-t-il été) (?:donc |déjà )?fait|(?:tu viens|vous venez|viens-tu|venez-vous) de faire|qu(?:'| )as tu fait|tu as fait quoi|que s'?est-il passé|s est-il passé`),
	},
	{
		talkIdentity,
		regexp.MustCompile(`\b(?:who|what) are you\b|are you (?:a |an )?(?:real |language )?(?:model|ai|human|llm|robot|bot|chatgpt|claude)|qui es-tu|qui êtes-vous|es-tu (?:un |une )?(?:vrai )?(?:modèle|ia|robot|humain|llm|intelligence)|tu es qui`),
	},
	{
		talkHelp,
		regexp.MustCompile(`^(?:help|aide|à l'?aide|\?)(?: me|-moi)?$|what can (?:you|i) (?:do|say|ask)|que (?:peux|sais)-tu (?:faire|me)|que peux tu faire|what do you (?:know|understand)|comment (?:ça marche|tu marches)|how (?:does this|do you) work`),
	},
	{
		talkUnable,
		regexp.MustCompile(`^(?:what(?:'s| is)? the )?(?:what |current )?(?:time|weather|date|day)(?: is it| is today| like)?$|what (?:time|day|date) is it|what's the weather|^quelle heure|^quel (?:jour|temps) |^(?:what is|what's|combien font|how much is)? ?\d+ ?[-+*/x×] ?\d+|` +
			`^(?:please |can you |could you |would you |peux-tu |pouvez-vous )?(?:copy|move|duplicate|run|execute|install|translate|download|compile|calculate|copie|copier|déplace|déplacer|exécute|exécuter|installe|traduis|traduire|télécharge|télécharger|calcule|calculer) `),
	},
	{
		talkThanks,
		regexp.MustCompile(
			`^(?:ok |great |super |perfect |parfait )?(?:thanks|thank you|thx|merci|cheers)(?:$|[^\pL])`),
	},
	{talkBye, regexp.MustCompile(`^(?:bye|goodbye|see you|au revoir|à bientôt|salut et merci)(?:$|[^\pL])`)},
	{
		talkHello,
		regexp.MustCompile(`^(?:hello|hi|hey|good (?:morning|evening|afternoon)|bonjour|bonsoir|salut|coucou)(?: (?:there|you|toi|à toi|regie|all|à tous))*$`),
	},
}

// talks recognises what is no work: a greeting, a question about what was done.
func (s *step) talks(list []token) bool {
	text := strings.ToLower(said(list))
	for _, topic := range topics {
		if topic.pattern.MatchString(text) {
			s.verb, s.talk = wantsTalk, topic.talk
			return true
		}
	}
	return false
}

// said is a clause in plain words with its elisions, for patterns; quotations are left out.
func said(list []token) string {
	var out strings.Builder
	for i, t := range list {
		if t.quoted {
			continue
		}
		if i > 0 && out.Len() > 0 && !elision(list[i-1].word) {
			out.WriteByte(' ')
		}
		out.WriteString(strings.ReplaceAll(t.text, "’", "'"))
		if elision(t.word) {
			out.WriteByte('\'')
		}
	}
	return out.String()
}

// talk answers what is no work.
func (t *thread) talk(s *step) string {
	switch s.talk {
	case talkHello:
		return t.say("Hello.", "Bonjour.") + " " + t.help()
	case talkThanks:
		return t.say("You are welcome; though I am only rules, and not a model.",
			"Je vous en prie ; même si je ne suis que des règles, pas un modèle.")
	case talkBye:
		return t.say("Goodbye. What we did stays in the log: regie sessions show last.",
			"Au revoir. Ce que nous avons fait reste dans le journal : regie sessions show last.")
	case talkIdentity:
		return t.say(
			"I am the demo of Regie: a few hundred rules for words, in English and French. I am not a model and I understand nothing; but the tools, the approvals and the log that you see are the real ones. For a model: regie setup.",
			"Je suis la démonstration de Regie : quelques centaines de règles sur des mots, en français et en anglais. Je ne suis pas un modèle et je ne comprends rien ; mais les outils, les approbations et le journal que vous voyez sont les vrais. Pour un modèle : regie setup.")
	case talkAll:
		return t.say("I delete only what you name: a file, or a pattern with its directory, such as *.tmp in old/.",
			"Je ne supprime que ce que vous nommez : un fichier, ou un motif avec son répertoire, comme *.tmp dans old/.")
	case talkNot:
		return t.leave()
	case talkWhether:
		return t.say("I change nothing on a question. Tell me what to do, such as: delete notes/a.md.",
			"Sur une question, je ne change rien. Dites-moi quoi faire, par exemple : supprime notes/a.md.")
	case talkUnable:
		return t.unable()
	case talkUndo:
		return t.undo()
	case talkDid:
		return t.did()
	case talkChanged:
		return t.changed()
	case talkFiles:
		return t.touched()
	case talkWhy:
		return t.why()
	default:
		return t.help()
	}
}

func (t *thread) help() string {
	return t.say("I am not a model: I understand a few requests, one or several in a sentence:\n"+
		"- list the files in notes/, how many words has notes/a.md?\n"+
		"- read notes/a.md, show lines 2 to 5 of it\n"+
		"- search for \"garden\" in notes/, and write the result to found.md\n"+
		"- write \"hello\" to hello.txt, add to hello.txt: one more line\n"+
		"- replace \"hello\" by \"goodbye\" in hello.txt, then delete it\n"+
		"- note: the boiler is loud, show my notes\n"+
		"- read every note in notes/ and write a one-line summary of each to summaries/\n"+
		"- what did you change? why? how do I undo it?\n"+
		"For anything else, configure a model: regie setup.",
		"Je ne suis pas un modèle. Je comprends quelques demandes, une ou plusieurs par phrase :\n"+
			"- liste les fichiers dans notes/, combien de mots a notes/a.md ?\n"+
			"- lis notes/a.md, montre les lignes 2 à 5\n"+
			"- cherche « jardin » dans notes/, et écris le résultat dans trouvé.md\n"+
			"- écris « bonjour » dans bonjour.txt, ajoute à bonjour.txt : encore une ligne\n"+
			"- remplace « bonjour » par « au revoir » dans bonjour.txt, puis supprime-le\n"+
			"- note : la chaudière est bruyante, montre mes notes\n"+
			"- lis chaque note de notes/ et écris un résumé d'une ligne de chacune dans resumes/\n"+
			"- qu'as-tu changé ? pourquoi ? comment annuler ?\n"+
			"Pour toute autre chose, configurez un modèle : regie setup.")
}

// leave answers what is not to be done.
func (t *thread) leave() string {
	text := t.say("Then I do nothing.", "Alors je ne fais rien.")
	for _, one := range slices.Backward(t.history()) {
		if done := changes(one.past); len(done) > 0 {
			return text + " " + t.say("What was done before stands (%s); `regie undo` takes it back.",
				"Ce qui a été fait avant reste (%s) ; `regie undo` l'annule.", t.account(done))
		}
	}
	return text
}

func (t *thread) unable() string {
	return t.say(
		"I cannot do that: my tools list, read, search, write, edit and delete files, and I am rules, not a model. Say help for what I understand.",
		"Je ne sais pas faire cela : mes outils listent, lisent, cherchent, écrivent, modifient et suppriment des fichiers, et je suis des règles, pas un modèle. Dites aide pour ce que je comprends.")
}

func (t *thread) puzzled() string {
	if t.answers > 0 {
		return t.say("I do not understand that: I am rules, not a model. Say help for what I understand.",
			"Je ne comprends pas cela : je suis des règles, pas un modèle. Dites aide pour ce que je comprends.")
	}
	return t.say("I do not understand that.", "Je ne comprends pas cela.") + " " + t.help()
}

func (t *thread) undo() string {
	text := t.say(
		"I cannot undo anything myself, and need not: `regie undo` takes back what the last run changed in your files, as a whole, and shows it first. Deleted files come back with it too.",
		"Je ne peux rien annuler moi-même, et ce n'est pas nécessaire : `regie undo` défait en bloc ce que la dernière exécution a changé dans vos fichiers, et le montre d'abord. Les fichiers supprimés reviennent aussi.")
	for _, one := range slices.Backward(t.history()) {
		if done := changes(one.past); len(done) > 0 {
			return text + "\n" + t.say("The last changes were: %s.", "Les derniers changements : %s.", t.account(done))
		}
	}
	return text + "\n" + t.say("In this conversation nothing was changed.",
		"Dans cette conversation, rien n'a été changé.")
}

// history is all that was asked and done, what the same message asked for before too.
func (t *thread) history() []asked {
	if t.at == 0 {
		return t.earlier
	}
	return append(slices.Clone(t.earlier), asked{t.message, t.past[:t.at]})
}

// did tells what was asked and done, newest last.
func (t *thread) did() string {
	const most = 5
	var out []string
	for _, one := range t.history() {
		if account := t.account(one.past); account != "" {
			out = append(out, t.say("- You asked “%s”: %s", "- Vous avez demandé « %s » : %s",
				shorten(firstParagraph(one.message), 120), account))
		}
	}
	if len(out) == 0 {
		return t.say("Nothing yet: no tool was called in this conversation.",
			"Rien encore : aucun outil n'a été appelé dans cette conversation.")
	}
	head := t.say("This is what was done:", "Voici ce qui a été fait :")
	if len(out) > most {
		head, out = t.say("These were the last of %s:", "Voici les dernières de %s :",
			t.n(len(out), "request", "demande")), out[len(out)-most:]
	}
	return head + "\n" + strings.Join(out, "\n")
}

func (t *thread) changed() string {
	var done, not []string
	for _, one := range t.history() {
		for _, o := range changes(one.past) {
			done = append(done, "- "+o.args.Path+": "+shorten(t.words(o.content), 160))
		}
		for i := range one.past {
			if o := &one.past[i]; o.failed && (o.tool == toolWrite || o.tool == toolEdit || o.tool == toolDelete) {
				not = append(not, "- "+t.problem(o))
			}
		}
	}
	text := t.say("I changed nothing.", "Je n'ai rien changé.")
	if len(done) > 0 {
		text = t.say("I changed:", "J'ai changé :") + "\n" + strings.Join(done, "\n")
	}
	if len(not) > 0 {
		text += "\n" + t.say("And this I did not do:", "Et ceci, je ne l'ai pas fait :") +
			"\n" + strings.Join(not, "\n")
	}
	return text
}

// touched tells which files were read and which were changed.
func (t *thread) touched() string {
	var past []outcome
	for _, one := range t.history() {
		for _, o := range one.past {
			if o.tool != toolList && o.tool != toolAsk && o.tool != toolSearch && o.tool != toolMore && !o.failed {
				past = append(past, o)
			}
		}
	}
	if account := t.account(past); account != "" {
		return account + "."
	}
	return t.say("None: I have opened no file in this conversation.",
		"Aucun : je n'ai ouvert aucun fichier dans cette conversation.")
}

// why explains the last request by the rules that it met.
func (t *thread) why() string {
	for _, one := range slices.Backward(t.earlier) {
		steps := understand(one.message, t.french)
		if steps[0].verb == unclear || steps[0].verb == wantsTalk {
			continue
		}
		out := []string{
			t.say("You asked “%s”. My rules took that for: %s. I have no reasons of my own: I am not a model.",
				"Vous avez demandé « %s ». Mes règles y ont lu : %s. Je n'ai pas de raisons à moi : je ne suis pas un modèle.", shorten(firstParagraph(one.message), 120), t.described(steps)),
		}
		for j := range one.past {
			if o := &one.past[j]; o.failed {
				out = append(out, "- "+t.problem(o))
			}
		}
		return strings.Join(out, "\n")
	}
	return t.say("I have done nothing yet that could have a reason.",
		"Je n'ai encore rien fait qui puisse avoir une raison.")
}

// described says what steps would do, as the rules took them.
func (t *thread) described(steps []step) string {
	var out []string
	for i := range steps {
		s := &steps[i]
		what := strings.Join(s.paths, ", ")
		if what == "" && s.it {
			what = t.say("that file", "ce fichier")
		}
		switch s.verb {
		case wantsList:
			out = append(out, t.say("list %s", "parcourir %s", orHere(t, what)))
		case wantsRead:
			out = append(out, t.say("read %s", "lire %s", what))
		case wantsSearch:
			out = append(out, t.say("search for “%s”", "chercher « %s »", s.query))
		case wantsCount:
			out = append(out, t.say("count in %s", "compter dans %s", orHere(t, what)))
		case wantsWrite:
			out = append(out, t.say("write to %s", "écrire dans %s", cmp.Or(s.to, what)))
		case wantsEdit:
			out = append(out, t.say("replace “%s” by “%s” in %s", "remplacer « %s » par « %s » dans %s", s.old, s.new,
				what))
		case wantsDelete:
			out = append(out, t.say("delete %s", "supprimer %s", what+s.pattern))
		case wantsDigest:
			out = append(out, t.say("summarise %s", "résumer %s", what))
		case wantsTalk:
			out = append(out, t.say("answer you", "vous répondre"))
		}
	}
	return strings.Join(out, t.say(", then ", ", puis "))
}

func orHere(t *thread, what string) string {
	if what == "" || what == "." {
		return t.say("the workspace", "l'espace de travail")
	}
	return what
}
