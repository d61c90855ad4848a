package demo

// phrases are what the rules say, in one language. The demo provider plays a model, whose words are not of the catalogue.
type phrases struct {
	intro, help, noTools                      string
	lookAt, found, failed, nothing            string
	willRead, willWrite, wrote, willSummarise string
	source, summarised, problems              string
}

var englishPhrases = phrases{
	intro:         "(I am the demo: a few rules, not a model.) ",
	help:          "I understand: “list files in notes/”, “read notes/a.md”, “write \"hello\" to hello.txt”, “append \"one more line\" to hello.txt”, and “summarise every text of notes/ into summaries/”.",
	noTools:       "No file tools are in my scope, so there is nothing that I can do here.",
	lookAt:        "I look at %s.",
	found:         "This is %s:",
	failed:        "That did not work: %s",
	nothing:       "There is no text file in %s, so there is nothing to summarise.",
	willRead:      "I read %d texts.",
	willWrite:     "I write to %s.",
	wrote:         "Done: %s.",
	willSummarise: "I make %d writes into %s.",
	source:        "Source: %s, %d words.",
	summarised:    "I wrote %d summaries into %s and %d lines into %s. Each takes the first heading and the first sentence of its text; a model would do better.",
	problems:      "This did not work:",
}

var frenchPhrases = phrases{
	intro:         "(Je suis la démonstration : quelques règles, pas un modèle.) ",
	help:          "Je comprends : « liste les fichiers dans notes/ », « lis notes/a.md », « écris \"bonjour\" dans bonjour.txt », « ajoute \"une ligne\" à bonjour.txt », et « résume chaque texte de notes/ dans resumes/ ».",
	noTools:       "Aucun outil de fichiers n'est à ma portée : je ne peux rien faire ici.",
	lookAt:        "Je regarde %s.",
	found:         "Voici %s :",
	failed:        "Cela n'a pas marché : %s",
	nothing:       "Il n'y a aucun texte dans %s, donc rien à résumer.",
	willRead:      "Je lis %d textes.",
	willWrite:     "J'écris dans %s.",
	wrote:         "C'est fait : %s.",
	willSummarise: "Je fais %d écritures dans %s.",
	source:        "Source : %s, %d mots.",
	summarised:    "J'ai écrit %d résumés dans %s et %d lignes dans %s. Chacun reprend le premier titre et la première phrase de son texte ; un modèle ferait mieux.",
	problems:      "Ceci n'a pas marché :",
}
