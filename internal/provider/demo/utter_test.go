package demo

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

func household() map[string]string {
	return map[string]string{
		"notes/garden.md":      "# Garden plan\n\nTomatoes go to the south wall.\nBeans go north. Tomatoes need water.\n",
		"notes/boiler.md":      "# Boiler\n\nServiced on 3 March.\n",
		"notes/budget-2025.md": "# Budget 2025\n\nFood: 400\n",
		"notes/budget-2026.md": "# Budget 2026\n\nFood: 450\n",
		"notes/école.md":       "# École\n\nLa réunion est le 12 septembre.\n",
		"todo.txt":             "milk\nbread\n",
		"old/a.tmp":            "a\n", "old/b.tmp": "b\n",
	}
}

// made are the calls since a reply, one a word or two.
func (w *world) made(since int) string {
	var out []string
	for _, reply := range w.replies[since:] {
		for _, part := range reply.Parts {
			if part.Type != regie.PartCall {
				continue
			}
			var args arguments
			_ = json.Unmarshal([]byte(part.Call.Arguments), &args)
			_, name, _ := strings.Cut(part.Call.Name, "__")
			name, _, _ = strings.Cut(name, "_")
			text := strings.TrimSpace(name + " " + args.Path)
			for _, more := range []string{args.Pattern, args.Query, args.Mode, strings.TrimSuffix(args.Content, "\n"), string(args.Edits), strings.Join(args.Options, "/")} {
				if more != "" {
					text += " <" + more + ">"
				}
			}
			if args.StartLine > 0 {
				text += fmt.Sprintf(" %d-%d", args.StartLine, args.EndLine)
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, " | ")
}

// TestUtterances: what a person says, in both languages, and what is done about it.
func TestUtterances(t *testing.T) {
	for _, c := range []struct{ before, say, calls, answer string }{
		{"", "raed notes/garden.md", "read notes/garden.md", "This is notes/garden.md:"},
		{"", "read @notes/garden.md", "read notes/garden.md", "This is notes/garden.md:"},
		{"", `lis @"notes/garden.md"`, "read notes/garden.md", "Voici notes/garden.md :"},
		{"", "what is in @notes/garden.md?", "read notes/garden.md", "This is notes/garden.md:"},
		{"", "supprime @notes/garden.md", "delete notes/garden.md", "C'est fait"},
		{"", "read notes/garden.md for bob@example.org", "read notes/garden.md", "This is notes/garden.md:"},
		{"", "open the garden note", "list . | read notes/garden.md", "This is notes/garden.md:"},
		{"", "read garden", "list . | read notes/garden.md", "This is notes/garden.md:"},
		{"", "show me the boiler file", "list . | read notes/boiler.md", "This is notes/boiler.md:"},
		{"", "open the file budget", "list . | ask <notes/budget-2025.md/notes/budget-2026.md/none of them> | read notes/budget-2025.md", "This is notes/budget-2025.md:"},
		{"", "lis le budget", "list . | ask <notes/budget-2025.md/notes/budget-2026.md/aucun de ceux-là> | read notes/budget-2025.md", "Voici notes/budget-2025.md :"},
		{"", "ouvre jardin", "list . | search <jardin>", "Ce que je trouve pour « jardin » dans . :"},
		{"", "tell me about the garden", "list . | read notes/garden.md", "This is notes/garden.md:"},
		{"", "What does the boiler note say?", "list . | read notes/boiler.md", "This is notes/boiler.md:"},
		{"", "quel est le contenu de boiler ?", "list boiler | list . | read notes/boiler.md", "Voici notes/boiler.md :"},
		{"", "lis la note sur le boiler", "list . | read notes/boiler.md", "Voici notes/boiler.md :"},
		{"", "find notes about tomatoes", "search <tomatoes>", `What I find for “tomatoes” in .:`},
		{"", "grep -i tomatoes notes/", "search notes <tomatoes>", `What I find for “tomatoes” in notes:`},
		{"", "ls notes", "list notes", "In notes:"},
		{"", "please delete the boiler note and the garden note", "list . | list . | delete notes/boiler.md | delete notes/garden.md", "Done: deleted notes/boiler.md"},
		{"", "read all notes in notes/", "list notes | read notes/boiler.md | read notes/budget-2025.md | read notes/budget-2026.md | read notes/garden.md | read notes/école.md", "This is notes/boiler.md:"},
		{"", "lis tous les fichiers de notes/", "list notes | read notes/boiler.md | read notes/budget-2025.md | read notes/budget-2026.md | read notes/garden.md | read notes/école.md", "Voici notes/boiler.md :"},
		{"", `lis "notes/garden.md" puis supprime-le`, "read notes/garden.md | delete notes/garden.md", "Voici notes/garden.md :"},
		{"", "read notes/garden.md, then delete it", "read notes/garden.md | delete notes/garden.md", "This is notes/garden.md:"},
		{"read notes/garden.md", "delete it", "delete notes/garden.md", "Done: deleted notes/garden.md: it lies in the trash."},
		{"read notes/garden.md", "supprime ce fichier", "delete notes/garden.md", "C'est fait : deleted notes/garden.md: it lies in the trash."},
		{"", "search for tomatoes", "search <tomatoes>", `What I find for “tomatoes” in .:`},
		{"", `search for "Food" in notes/`, "search notes <Food>", `What I find for “Food” in notes:`},
		{"", "cherche Food dans notes/", "search notes <Food>", "Ce que je trouve pour « Food » dans notes :"},
		{"", "which files mention tomatoes?", "search <tomatoes>", `What I find for “tomatoes” in .:`},
		{"", "where is boiler mentioned?", "search <boiler>", `What I find for “boiler” in .:`},
		{"", "où est-ce que tomatoes apparaît ?", "search <tomatoes>", "Ce que je trouve pour « tomatoes » dans . :"},
		{"", "find all *.tmp files", "list . <*.tmp>", "In .:"},
		{"", "serach for tomatoes in notes/", "search notes <tomatoes>", `What I find for “tomatoes” in notes:`},
		{"", "how many files are in notes/?", "list notes", "There are 5 files in notes."},
		{"", "combien de fichiers dans notes/ ?", "list notes", "Il y a 5 fichiers dans notes."},
		{"", "how many words are in notes/garden.md?", "read notes/garden.md", "notes/garden.md has 14 words."},
		{"", "count the lines of todo.txt", "read todo.txt", "todo.txt has 2 lines."},
		{"", "combien de lignes a todo.txt ?", "read todo.txt", "todo.txt a 2 lignes."},
		{"", "combien de mots dans notes/école.md ?", "read notes/école.md", "notes/école.md a 7 mots."},
		{"", `replace "milk" by "oat milk" in todo.txt`, `read todo.txt | edit todo.txt <[{"new_string":"oat milk","old_string":"milk"}]>`, "Done: edited todo.txt."},
		{"", "replace milk with soy in todo.txt", `read todo.txt | edit todo.txt <[{"new_string":"soy","old_string":"milk"}]>`, "Done: edited todo.txt."},
		{"", "remplace milk par lait dans todo.txt", `read todo.txt | edit todo.txt <[{"new_string":"lait","old_string":"milk"}]>`, "C'est fait : edited todo.txt."},
		{"", "change bread to rolls in todo.txt", `read todo.txt | edit todo.txt <[{"new_string":"rolls","old_string":"bread"}]>`, "Done: edited todo.txt."},
		{"", "in todo.txt, replace milk by cheese", `read todo.txt | edit todo.txt <[{"new_string":"cheese","old_string":"milk"}]>`, "Done: edited todo.txt."},
		{"", "Replace all Tomatoes by Peppers in notes/garden.md", `read notes/garden.md | edit notes/garden.md <[{"new_string":"Peppers","old_string":"Tomatoes","replace_all":true}]>`, "Done: edited notes/garden.md."},
		{"", "replace Tomatoes by Peppers in notes/garden.md", `read notes/garden.md | ask <all 2/line 3: Tomatoes go to the south wall./line 4: Beans go north. Tomatoes need water.> | edit notes/garden.md <[{"new_string":"Peppers","old_string":"Tomatoes","replace_all":true}]>`, "Done: edited notes/garden.md."},
		{"", `corrige "tomatoes" en "Tomates" dans notes/garden.md`, `read notes/garden.md | ask <les 2/ligne 3 : Tomatoes go to the south wall./ligne 4 : Beans go north. Tomatoes need water.> | edit notes/garden.md <[{"new_string":"Tomates","old_string":"Tomatoes","replace_all":true}]>`, "C'est fait : edited notes/garden.md."},
		{"", "replace the word absent by x in todo.txt", "read todo.txt", "“absent” does not stand in todo.txt, so I changed nothing."},
		{"", `delete the line "milk" from todo.txt`, `read todo.txt | edit todo.txt <[{"new_string":"","old_string":"milk\n"}]>`, "Done: edited todo.txt."},
		{"", `supprime "bread" de todo.txt`, `read todo.txt | edit todo.txt <[{"new_string":"","old_string":"\nbread"}]>`, "C'est fait : edited todo.txt."},
		{"", "delete todo.txt", "delete todo.txt", "Done: deleted todo.txt: it lies in the trash."},
		{"", "delete boiler", "list . | delete notes/boiler.md", "Done: deleted notes/boiler.md: it lies in the trash."},
		{"", "effacer notes/boiler.md", "delete notes/boiler.md", "C'est fait : deleted notes/boiler.md: it lies in the trash."},
		{"", "remove old/a.tmp and old/b.tmp", "delete old/a.tmp | delete old/b.tmp", "Done: deleted old/a.tmp: it lies in the trash."},
		{"", "delete all *.tmp files in old/", "list old <*.tmp> | delete old/a.tmp | delete old/b.tmp", "Done: deleted old/a.tmp: it lies in the trash."},
		{"", "add to todo.txt: buy eggs and ham", "write todo.txt <append> <buy eggs and ham>", "Done: created todo.txt: 1 lines written, 28 bytes now."},
		{"", "ajoute à todo.txt : des œufs", "write todo.txt <append> <des œufs>", "C'est fait : created todo.txt: 1 lines written, 21 bytes now"},
		{"", `append "eggs" to todo.txt`, "write todo.txt <append> <eggs>", "Done: created todo.txt: 1 lines written, 16 bytes now."},
		{"", "add eggs to todo.txt", "write todo.txt <append> <eggs>", "Done: created todo.txt: 1 lines written, 16 bytes now."},
		{"", "ajoute œufs à todo.txt", "write todo.txt <append> <œufs>", "C'est fait : created todo.txt: 1 lines written, 17 bytes now"},
		{"", "note in notes/garden.md that the beans are up", "write notes/garden.md <append> <the beans are up>", "Done: created notes/garden.md: 1 lines written, 100 bytes no"},
		{"", "add a note to notes/garden.md: water on Monday", "write notes/garden.md <append> <water on Monday>", "Done: created notes/garden.md: 1 lines written, 99 bytes now"},
		{"", "write hello world to hello.txt", "write hello.txt <create> <hello world>", "Done: created hello.txt: 1 lines written, 12 bytes now."},
		{"", `write "hello" to todo.txt`, "write todo.txt <create> <hello> | ask <replace what is there/add it at the end/leave it as it is> | write todo.txt <overwrite> <hello>", "Done: created todo.txt: 1 lines written, 6 bytes now."},
		{"", "create hello.txt", "", `What shall stand in hello.txt? Say it like this: write "…" t`},
		{"", "search for Food in notes/ and write the result to found.md", "search notes <Food> | write found.md <create> <notes/budget-2025.md:3: Food: 400\nnotes/budget-2026.md:3: Food: 450>", `What I find for “Food” in notes:`},
		{"", "list notes/ and save the list to list.md", "list notes | write list.md <create> <notes/boiler.md\t31 bytes\nnotes/budget-2025.md\t25 bytes\nnotes/budget-2026.md\t25 bytes\nnotes/garden.md\t83 bytes\nnotes/école.md\t43 bytes>", "In notes:"},
		{"", `list notes/, read todo.txt and append "done" to todo.txt`, "list notes | read todo.txt | write todo.txt <append> <done>", "In notes:"},
		{"", "summarise notes/garden.md and write it to sum.md", "read notes/garden.md | write sum.md <create> <- Garden plan: Tomatoes go to the south wall. (notes/garden.md)>", "I read 1 text and wrote a line of each to sum.md: the first "},
		{"", "summarise notes/ and write the summaries to out/", "list notes | read notes/boiler.md | read notes/budget-2025.md | read notes/budget-2026.md | read notes/garden.md | read notes/école.md | write out/boiler.md <create> <# Boiler\n\nServiced on 3 March.\n\nSource: notes/boiler.md, 5 words.> | write out/index.md <append> <- Boiler: Serviced on 3 March. (notes/boiler.md)> | write out/budget-2025.md <create> <# Budget 2025\n\nFood: 400\n\nSource: notes/budget-2025.md, 4 words.> | write out/index.md <append> <- Budget 2025: Food: 400 (notes/budget-2025.md)> | write out/budget-2026.md <create> <# Budget 2026\n\nFood: 450\n\nSource: notes/budget-2026.md, 4 words.> | write out/index.md <append> <- Budget 2026: Food: 450 (notes/budget-2026.md)> | write out/garden.md <create> <# Garden plan\n\nTomatoes go to the south wall.\n\nSource: notes/garden.md, 14 words.> | write out/index.md <append> <- Garden plan: Tomatoes go to the south wall. (notes/garden.md)> | write out/école.md <create> <# École\n\nLa réunion est le 12 septembre.\n\nSource: notes/école.md, 7 words.> | write out/index.md <append> <- École: La réunion est le 12 septembre. (notes/école.md)>", "I read 5 texts and wrote 5 summaries into out (boiler.md, bu"},
		{"", "summarise notes/", "list notes | read notes/boiler.md | read notes/budget-2025.md | read notes/budget-2026.md | read notes/garden.md | read notes/école.md", "I read 5 texts. These are the first headings and the first s"},
		{"", "résume notes/garden.md", "read notes/garden.md", "J'ai lu 1 texte. Voici les premiers titres et les premières "},
		{"read notes/garden.md", "summarise it", "read notes/garden.md", "I read 1 text. These are the first headings and the first se"},
		{"", "read every note in notes/ and write a one-line summary of each to out.md", "list notes | read notes/boiler.md | read notes/budget-2025.md | read notes/budget-2026.md | read notes/garden.md | read notes/école.md | write out.md <create> <- Boiler: Serviced on 3 March. (notes/boiler.md)\n- Budget 2025: Food: 400 (notes/budget-2025.md)\n- Budget 2026: Food: 450 (notes/budget-2026.md)\n- Garden plan: Tomatoes go to the south wall. (notes/garden.md)\n- École: La réunion est le 12 septembre. (notes/école.md)>", "I read 5 texts and wrote a line of each to out.md: the first"},
		{"", "how do I undo?", "", "I cannot undo anything myself, and need not: `regie undo` ta"},
		{"", "comment annuler ?", "", "Je ne peux rien annuler moi-même, et ce n'est pas nécessaire"},
		{`append "eggs" to todo.txt`, "what did you do?", "", "This is what was done:"},
		{`append "eggs" to todo.txt`, "what did you change?", "", "I changed:"},
		{`append "eggs" to todo.txt`, "qu'as-tu changé ?", "", "J'ai changé :"},
		{`append "eggs" to todo.txt`, "which files did you change?", "", "I changed:"},
		{`append "eggs" to todo.txt`, "undo that", "", "I cannot undo anything myself, and need not: `regie undo` ta"},
		{`append "eggs" to todo.txt`, "why?", "", `You asked “append "eggs" to todo.txt”. My rules took that fo`},
		{`append "eggs" to todo.txt`, "pourquoi ?", "", `Vous avez demandé « append "eggs" to todo.txt ». Mes règles `},
		{`append "eggs" to todo.txt`, "qu'as-tu fait ?", "", "Voici ce qui a été fait :"},
		{"", "what did you do?", "", "Nothing yet: no tool was called in this conversation."},
		{"", "are you a model?", "", "I am the demo of Regie: a few hundred rules for words, in En"},
		{"", "es-tu un modèle ?", "", "Je suis la démonstration de Regie : quelques centaines de rè"},
		{"", "help", "", "I am not a model: I understand a few requests, one or severa"},
		{"", "aide", "", "Je ne suis pas un modèle. Je comprends quelques demandes, un"},
		{"", "what is here?", "list .", "failed"}, // the world of the tests has no such directory
		{"", "find beans in the garden note", "search garden <beans> | list . | search notes/garden.md <beans>", `What I find for “beans” in notes/garden.md:`},
		{"", "delete everything", "", "I delete only what you name"},
		{"", "supprime tout", "", "Je ne supprime que ce que vous nommez"},
		{"", "thanks!", "", "You are welcome; though I am only rules, and not a model."},
		{"", "merci", "", "Je vous en prie ; même si je ne suis que des règles, pas un "},
		{"", "hello", "", "Hello. I am not a model: I understand a few requests, one or"},
		{"", "hi, read todo.txt", "read todo.txt", "This is todo.txt:"},
		{"", "good morning", "", "Hello. I am not a model: I understand a few requests, one or"},
		{"", "bye", "", "Goodbye. What we did stays in the log: regie sessions show l"},
		{"", "delete it", "", "Which file do you mean? Name it, please."},
		{"", "what's the weather like?", "", "I cannot do that: my tools list, read, search, write, edit a"},
		{"", "quel temps fait-il ?", "", "Je ne sais pas faire cela : mes outils listent, lisent, cher"},
		{"", "read nowhere.md", "read nowhere.md | list .", "nowhere.md: failed (FILE_NOT_FOUND): nowhere.md does not exi"},
		{"", "read notes/gardn.md", "read notes/gardn.md | list . | read notes/garden.md", "This is notes/garden.md:"},
		{"", "list", "list .", ".: failed (FILE_NOT_FOUND): . does not exist"},
		{"", "what is in notes?", "list notes", "In notes:"},
		{"", "show lines 2 to 3 of notes/garden.md", "read notes/garden.md 2-3", "This is notes/garden.md:"},
		{"", "please read todo.txt and notes/boiler.md", "read todo.txt | read notes/boiler.md", "This is todo.txt:"},
		{"", "can you list the files in notes/ please?", "list notes", "In notes:"},
		{"", "peux-tu lire todo.txt s'il te plaît", "read todo.txt", "Voici todo.txt :"},
		{"", "rename milk to lait in todo.txt", `read todo.txt | edit todo.txt <[{"new_string":"lait","old_string":"milk"}]>`, "Done: edited todo.txt."},
		{"", "résume notes/ et écris les résumés dans out/", "list notes | read notes/boiler.md | read notes/budget-2025.md | read notes/budget-2026.md | read notes/garden.md | read notes/école.md | write out/boiler.md <create> <# Boiler\n\nServiced on 3 March.\n\nSource : notes/boiler.md, 5 mots.> | write out/index.md <append> <- Boiler: Serviced on 3 March. (notes/boiler.md)> | write out/budget-2025.md <create> <# Budget 2025\n\nFood: 400\n\nSource : notes/budget-2025.md, 4 mots.> | write out/index.md <append> <- Budget 2025: Food: 400 (notes/budget-2025.md)> | write out/budget-2026.md <create> <# Budget 2026\n\nFood: 450\n\nSource : notes/budget-2026.md, 4 mots.> | write out/index.md <append> <- Budget 2026: Food: 450 (notes/budget-2026.md)> | write out/garden.md <create> <# Garden plan\n\nTomatoes go to the south wall.\n\nSource : notes/garden.md, 14 mots.> | write out/index.md <append> <- Garden plan: Tomatoes go to the south wall. (notes/garden.md)> | write out/école.md <create> <# École\n\nLa réunion est le 12 septembre.\n\nSource : notes/école.md, 7 mots.> | write out/index.md <append> <- École: La réunion est le 12 septembre. (notes/école.md)>", "J'ai lu 5 textes et écrit 5 résumés dans out (boiler.md, bud"},
		{"", "supprime « milk » de todo.txt", `read todo.txt | edit todo.txt <[{"new_string":"","old_string":"milk\n"}]>`, "C'est fait : edited todo.txt."},
		{"", "cherche « Food » dans notes/, puis écris le résultat dans food.md", "search notes <Food> | write food.md <create> <notes/budget-2025.md:3: Food: 400\nnotes/budget-2026.md:3: Food: 450>", "Ce que je trouve pour « Food » dans notes :"},
		{"", "lis notes/boiler.md et notes/garden.md", "read notes/boiler.md | read notes/garden.md", "Voici notes/boiler.md :"},
		{"", "écris « bonjour à tous » dans bonjour.txt", "write bonjour.txt <create> <bonjour à tous>", "C'est fait : created bonjour.txt: 1 lines written, 16 bytes "},
		{"", "écrase todo.txt avec « rien »", "write todo.txt <overwrite> <rien>", "C'est fait : created todo.txt: 1 lines written, 5 bytes now."},
		{"", "mets « pain » dans courses.txt puis lis-le", "write courses.txt <create> <pain> | read courses.txt", "C'est fait : created courses.txt: 1 lines written, 5 bytes n"},
		{"", "montre les lignes 2 à 3 de notes/garden.md", "read notes/garden.md 2-3", "Voici notes/garden.md :"},
		{"", "effacre todo.txt", "delete todo.txt", "C'est fait : deleted todo.txt: it lies in the trash."},
		{"", "liste les fichiers *.tmp dans old/", "list old <*.tmp>", "Dans old :"},
		{"", "quels fichiers contiennent Food ?", "search <Food>", "Ce que je trouve pour « Food » dans . :"},
		{"", "thanks, now delete todo.txt", "delete todo.txt", "You are welcome; though I am only rules, and not a model."},
		{"", "read todo.txt. Then replace milk by tea in it. What did you do?", `read todo.txt | read todo.txt | edit todo.txt <[{"new_string":"tea","old_string":"milk"}]>`, "This is todo.txt:"},
		{"", "ouvre le fichier boiler puis ajoute-le", "list . | read notes/boiler.md", "Voici notes/boiler.md :"},
		{"", "remplace « 400 » par « 420 » dans budget", `list . | ask <notes/budget-2025.md/notes/budget-2026.md/aucun de ceux-là> | read notes/budget-2025.md | edit notes/budget-2025.md <[{"new_string":"420","old_string":"400"}]>`, "C'est fait : edited notes/budget-2025.md."},
		{"", `read 'todo.txt' and "notes/boiler.md"`, "read todo.txt | read notes/boiler.md", "This is todo.txt:"},
		{"", `replace "milk" with "" in todo.txt`, `read todo.txt | edit todo.txt <[{"new_string":"","old_string":"milk\n"}]>`, "Done: edited todo.txt."},
		{"delete it", "yes", "", "Say help for what I understand."},
		{"", "qui es-tu ?", "", "Je suis la démonstration de Regie : quelques centaines de rè"},
		{"", "quels fichiers as-tu lus ?", "", "Aucun : je n'ai ouvert aucun fichier dans cette conversation"},
		{"read notes/boiler.md", "quels fichiers as-tu lus ?", "", "1 fichier lu (notes/boiler.md)."},
		{"read notes/boiler.md", `append "x" to that file`, "write notes/boiler.md <append> <x>", "Done: created notes/boiler.md: 1 lines written, 33 bytes now"},
		{"lis notes/boiler.md", "ajoute « x » à ce fichier", "write notes/boiler.md <append> <x>", "C'est fait : created notes/boiler.md: 1 lines written, 33 by"},
		// What must not be done, is only asked about, or is dictated, is not done.
		{"", "do not delete todo.txt", "", "Then I do nothing."},
		{"", "don't delete todo.txt", "", "Then I do nothing."},
		{"", "Please never overwrite todo.txt with 'x'", "", "Then I do nothing."},
		{"", "no wait, don’t delete todo.txt!", "", "Then I do nothing."},
		{"", "ne supprime pas todo.txt", "", "Alors je ne fais rien."},
		{"", "n'efface jamais todo.txt", "", "Alors je ne fais rien."},
		{"", "read todo.txt and don't delete it", "read todo.txt", "This is todo.txt:"},
		{"", "lis todo.txt, mais ne le supprime pas", "read todo.txt", "Voici todo.txt :"},
		{`append "eggs" to todo.txt`, "no, don't add it", "", "Then I do nothing. What was done before stands (1 file written (todo.txt)); `regie undo` takes it back."},
		{"", "did you delete todo.txt?", "", "I changed nothing."},
		{`append "eggs" to todo.txt`, "did you change anything?", "", "I changed:"},
		{"", "as-tu supprimé todo.txt ?", "", "Je n'ai rien changé."},
		{"", "should I delete todo.txt?", "", "I change nothing on a question."},
		{"", "what if I delete todo.txt?", "", "I change nothing on a question."},
		{"", "dois-je supprimer todo.txt ?", "", "Sur une question, je ne change rien."},
		{"", "would you delete todo.txt please", "delete todo.txt", "Done: deleted todo.txt"},
		{"", "add to todo.txt: delete the old branch", "write todo.txt <append> <delete the old branch>", "Done:"},
		{"", "add to todo.txt: do not delete the branch, search for it", "write todo.txt <append> <do not delete the branch, search for it>", "Done:"},
		{"", "ajoute à todo.txt : supprimer la branche, puis chercher", "write todo.txt <append> <supprimer la branche, puis chercher>", "C'est fait :"},
		{"", "note in todo.txt that we must delete the old files", "write todo.txt <append> <we must delete the old files>", "Done:"},
		{"", "write a file called plan.txt with: replace the filter by Monday", "write plan.txt <create> <replace the filter by Monday>", "Done:"},
		{"", "create a file new/z.txt containing hello world", "write new/z.txt <create> <hello world>", "Done:"},
		{"", "crée un fichier z.txt contenant bonjour le monde", "write z.txt <create> <bonjour le monde>", "C'est fait :"},
		{"", "how do I delete todo.txt?", "", "I change nothing on a question."},
		{"", "comment supprimer todo.txt ?", "", "Sur une question, je ne change rien."},
		{"", "can I delete todo.txt?", "", "I change nothing on a question."},
		{"", "est-ce que je peux supprimer todo.txt ?", "", "Sur une question, je ne change rien."},
		{"", "explain how to replace milk by tea in todo.txt", "", "I change nothing on a question."},
		{"", "tell me before you delete todo.txt", "", "I change nothing on a question."},
		{"", "show me how you would delete todo.txt", "", "I change nothing on a question."},
		{"", "I deleted todo.txt by accident, can you restore it?", "", "I cannot undo anything myself"},
		{"", "j'ai supprimé todo.txt par erreur", "", "Sur une question, je ne change rien."},
		{"", "keep todo.txt, delete notes/boiler.md", "", "I change nothing on a question."},
		{"", "delete everything except todo.txt", "", "I delete only what you name"},
		{"", "delete old/*.tmp except old/a.tmp", "", "I delete only what you name"},
		{"", "supprime tout sauf todo.txt", "", "Je ne supprime que ce que vous nommez"},
		{"", "remove the word milk from todo.txt", `read todo.txt | edit todo.txt <[{"new_string":"","old_string":"milk\n"}]>`, "Done: edited todo.txt."},
		{"", "delete line 2 of todo.txt", "read todo.txt", "“line 2” does not stand in todo.txt, so I changed nothing."},
		{"", "I want you to delete todo.txt", "delete todo.txt", "Done: deleted todo.txt"},
		{"", "ok, now please delete todo.txt", "delete todo.txt", "Done: deleted todo.txt"},
		{"", "tu peux supprimer todo.txt s'il te plaît", "delete todo.txt", "C'est fait : deleted todo.txt"},
		// Notes that name no file.
		{"", "make a note: call the plumber on Monday", "write notes.md <append> <call the plumber on Monday>", "Done:"},
		{"", "take a note that the boiler is loud", "write notes.md <append> <the boiler is loud>", "Done:"},
		{"", "remember that my dog is called Rex", "write notes.md <append> <my dog is called Rex>", "Done:"},
		{"", "don't forget to delete the old mail", "write notes.md <append> <delete the old mail>", "Done:"},
		{"", "note: call mum, and read the letter", "write notes.md <append> <call mum, and read the letter>", "Done:"},
		{"", "prends note : appeler le plombier lundi", "write notes.md <append> <appeler le plombier lundi>", "C'est fait :"},
		{"", "note que la chaudière est bruyante", "write notes.md <append> <la chaudière est bruyante>", "C'est fait :"},
		{"", "souviens-toi que mon chien s'appelle Rex", "write notes.md <append> <mon chien s'appelle Rex>", "C'est fait :"},
		{"make a note: call mum", "show my notes", "read notes.md", "This is notes.md:"},
		{"prends note : appeler maman", "montre mes notes", "read notes.md", "Voici notes.md :"},
		// More that people say.
		{"", "how many files are there?", "list .", "There are 8 files in the workspace."},
		{"", "combien y a-t-il de fichiers ?", "list .", "Il y a 8 fichiers dans l'espace de travail."},
		{"", "summarise the notes", "list notes | read notes/boiler.md | read notes/budget-2025.md | read notes/budget-2026.md | read notes/garden.md | read notes/école.md", "I read 5 texts."},
		{"", "résume les notes", "list notes | read notes/boiler.md | read notes/budget-2025.md | read notes/budget-2026.md | read notes/garden.md | read notes/école.md", "J'ai lu 5 textes."},
		{"read todo.txt", "what did you just do?", "", "This is what was done:"},
		{"lis todo.txt", "qu'est-ce que tu viens de faire ?", "", "Voici ce qui a été fait :"},
		{"", "rename todo.txt to list.txt", "", "I cannot do that"},
		{"", "copy todo.txt to list.txt", "", "I cannot do that"},
		{"", "renomme todo.txt en liste.txt", "", "Je ne sais pas faire cela"},
		{"", "what time is it?", "", "I cannot do that"},
		{"", "translate notes/garden.md to French", "", "I cannot do that"},
		{"lis notes/boiler.md", "combien de mots ?", "read notes/boiler.md", "notes/boiler.md a 5 mots."},
	} {
		w := newWorld(t, household())
		w.chosen = func(options []string) string { return options[0] }
		since := 0
		if c.before != "" {
			w.ask(c.before)
			since = len(w.replies)
		}
		answer := w.ask(c.say)
		if got := w.made(since); got != c.calls {
			t.Errorf("%q after %q\n got %s\nwant %s", c.say, c.before, got, c.calls)
		}
		if !strings.Contains(answer, c.answer) {
			t.Errorf("%q after %q: %s\nwant %s in it", c.say, c.before, answer, c.answer)
		}
	}
}
