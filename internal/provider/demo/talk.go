package demo

const (
	englishHelp = `Hello. This is the demo of Regie: a few rules, not a model. The tools, approvals and log are real.
It understands one request at a time, such as:
- list the files in notes/
- read notes/a.md
- search for "garden" in notes/ and write the result to found.md
- summarise every text of notes/ into summaries/
- write "hello" to hello.txt
- append "one more line" to it
- replace "hello" by "goodbye" in hello.txt
- how many lines does hello.txt have?
- delete hello.txt
- run "ls -l"
For anything else, ` + "`regie setup` configures a model."

	frenchHelp = `Bonjour. Ceci est la démonstration de Regie : quelques règles, pas un modèle.
Les outils, les approbations et le journal sont les vrais. Elle comprend une demande à la fois, par exemple :
- liste les fichiers de notes/
- lis notes/a.md
- cherche « jardin » dans notes/ et écris le résultat dans trouvé.md
- résume chaque texte de notes/ dans resumes/
- écris « bonjour » dans bonjour.txt
- ajoute « encore une ligne » à ce fichier
- remplace « bonjour » par « au revoir » dans bonjour.txt
- combien de lignes a bonjour.txt ?
- supprime bonjour.txt
- exécute « ls -l »
Pour toute autre chose, ` + "`regie setup` configure un modèle."
)

func (t *thread) showHelp(parts) reply {
	return reply{text: t.say(englishHelp, frenchHelp), introduced: true}
}

// decline answers what no pattern matches.
func (t *thread) decline(parts) reply {
	return reply{introduced: true, text: t.say("This is only the demo, not a model: it understands a few requests "+
		"(say “help”), and `regie setup` configures a model.",
		"Ceci n'est que la démonstration, pas un modèle : elle comprend quelques demandes "+
			"(dites « aide »), et `regie setup` configure un modèle.")}
}
