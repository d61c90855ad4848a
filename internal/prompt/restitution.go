package prompt

import "github.com/regie-run/regie"

// Restitution is what the guidance for the model call that follows results depends on (spec 6.2).
type Restitution struct {
	Dialect regie.Dialect
	// Withheld says that only an answer is wanted (spec 3.3).
	Withheld bool
	// Completes says that the run is unattended, and ends otherwise than by an answer.
	Completes bool
	Strict    bool // the four parts are asked for one by one
	French    bool
}

// restitution chunks, in their order (spec 6.2).
var restitution = [][2]string{
	{ // the current message, and what was said before it
		"stay with the current request and what was said before it; ",
		"tiens-t'en à la demande en cours et à ce qui a été dit avant ; ",
	},
	{ // an answer in four parts
		"in 4 to 6 warm sentences say what you did, what it means for the person, the result itself (short results whole, of long ones the first 3 to 5 lines; /show in the terminal shows the rest), and one concrete next step. ",
		"en 4 à 6 phrases chaleureuses, dis ce que tu as fait, ce que cela signifie pour la personne, le résultat lui-même (entier s'il est court, sinon ses 3 à 5 premières lignes ; /show dans le terminal montre la suite), et une suite concrète. ",
	},
	{ // no raw data
		"Plain language in the person's language, no raw JSON of results, no internal ids, no repetition of the request. ",
		"Des mots simples dans la langue de la personne, jamais le JSON brut des résultats, ni identifiants internes, ni répétition de la demande. ",
	},
	{ // errors
		"Say plainly what failed and what can be done about it; never apologise for what succeeded.",
		"Dis franchement ce qui a échoué et ce qu'on peut y faire ; ne t'excuse jamais de ce qui a réussi.",
	},
}

// Text is the guidance at the end of one request; it is no part of the thread.
func (r Restitution) Text() string {
	language, out := 0, "[Guidance, not from the person] "
	if r.French {
		language, out = 1, "[Indication, pas de la personne] "
	}
	if r.Completes {
		out += completing[language]
	} else {
		out += beginnings[language][indexOf(r.Dialect == regie.DialectJSON)][indexOf(r.Withheld)]
	}
	for _, said := range restitution {
		out += said[language]
	}
	if r.Strict {
		out += " " + fourParts[language]
	}
	return out
}

func indexOf(second bool) int {
	if second {
		return 1
	}
	return 0
}

// beginnings name the author of the guidance and the goal, the next step or the answer: in English
// and in French, natively and in JSON, with tools and without.
var beginnings = [2][2][2]string{
	{{
		"If a step of the current request is still missing, take it now with a tool call. Otherwise answer: ",
		"No tools are available now: answer the person: ",
	}, {
		"If a step of the current request is still missing, send the commands for it now. Otherwise answer with pre_text alone: ",
		"No commands are available now: answer with pre_text alone: ",
	}},
	{{
		"S'il manque encore une étape à la demande en cours, fais-la maintenant par un appel d'outil. Sinon réponds : ",
		"Aucun outil n'est disponible maintenant : réponds à la personne : ",
	}, {
		"S'il manque encore une étape à la demande en cours, envoie maintenant les commandes pour elle. Sinon réponds avec pre_text seul : ",
		"Aucune commande n'est disponible maintenant : réponds avec pre_text seul : ",
	}},
}

// completing is the beginning for an unattended run.
var completing = [2]string{
	"If a step of the work is still missing, take it now. Otherwise complete the run, and in its summary: ",
	"S'il manque encore une étape au travail, fais-la maintenant. Sinon termine l'exécution, et dans son résumé : ",
}
