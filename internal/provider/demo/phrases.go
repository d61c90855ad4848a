package demo

// phrases are what the rules say, in one language. They are no part of the catalogue: the demo provider plays a model, whose words are
// its own.
type phrases struct {
	intro, help, noTool                        string
	willList, willRead, willWrite              string
	willSummarise                              string
	listed, content, written, notWritten       string
	source, words, manyWords, noSentence       string
	summarised, told, wroteNothing, nothing    string
	problems, failed, unknown, notRun, missing string
}

var englishPhrases = phrases{
	intro: "(This is the demo: a few rules, not a model.)",
	help: "I understand a few requests:\n" +
		"- list the files in notes/\n" +
		"- read notes/a.md\n" +
		"- write \"hello\" to hello.txt, or append \"one more line\" to hello.txt\n" +
		"- read every note in notes/ and write a one-line summary of each to summaries/\n" +
		"For anything else, configure a model.",
	noTool:        "The tool %s is not in my scope, so I cannot go on.",
	willList:      "I look at %s.",
	willRead:      "I read %d texts.",
	willWrite:     "I write to %s.",
	willSummarise: "I make %d writes into %s.",
	listed:        "In %s:",
	content:       "This is %s:",
	written:       "Done: %s.",
	notWritten:    "It is not done.",
	source:        "Source: %s, %s.",
	words:         "%d words",
	manyWords:     "more than %d words",
	noSentence:    "(no text)",
	summarised: "I read %d texts and wrote %d summaries into %s (%s) and %d lines into %s. " +
		"Each takes the first heading and the first sentence of its text; a model would do better.",
	told:         "I read %d texts. These are their first headings and first sentences; a model would do better.",
	wroteNothing: "I read %d texts and wrote nothing.",
	nothing:      "There is no text file in %s, so there is nothing to summarise.",
	problems:     "Not everything worked:",
	failed:       "failed",
	unknown:      "the outcome is not known, look before you try again",
	notRun:       "was not run",
	missing:      "%d writes were not tried",
}

var frenchPhrases = phrases{
	intro: "(Ceci est la démonstration : quelques règles, pas un modèle.)",
	help: "Je comprends quelques demandes :\n" +
		"- liste les fichiers dans notes/\n" +
		"- lis notes/a.md\n" +
		"- écris « bonjour » dans bonjour.txt, ou ajoute « une ligne » à bonjour.txt\n" +
		"- lis chaque note de notes/ et écris un résumé d'une ligne de chacune dans resumes/\n" +
		"Pour toute autre chose, configurez un modèle.",
	noTool:        "L'outil %s n'est pas à ma portée : je ne peux pas continuer.",
	willList:      "Je regarde %s.",
	willRead:      "Je lis %d textes.",
	willWrite:     "J'écris dans %s.",
	willSummarise: "Je fais %d écritures dans %s.",
	listed:        "Dans %s :",
	content:       "Voici %s :",
	written:       "C'est fait : %s.",
	notWritten:    "Ce n'est pas fait.",
	source:        "Source : %s, %s.",
	words:         "%d mots",
	manyWords:     "plus de %d mots",
	noSentence:    "(pas de texte)",
	summarised: "J'ai lu %d textes et écrit %d résumés dans %s (%s) et %d lignes dans %s. " +
		"Chacun reprend le premier titre et la première phrase de son texte ; un modèle ferait mieux.",
	told:         "J'ai lu %d textes. Voici leurs premiers titres et premières phrases ; un modèle ferait mieux.",
	wroteNothing: "J'ai lu %d textes et n'ai rien écrit.",
	nothing:      "Il n'y a aucun texte dans %s, donc rien à résumer.",
	problems:     "Tout n'a pas marché :",
	failed:       "échec",
	unknown:      "résultat inconnu, vérifiez avant de recommencer",
	notRun:       "pas exécuté",
	missing:      "%d écritures n'ont pas été tentées",
}
