package prompt

import (
	"strings"

	"github.com/regie-run/regie"
)

// AgentsFile is a workspace's document for agents.
const AgentsFile = "AGENTS.md"

// level2Share is the part of the context budget that level 2 may take (decision 14).
const level2Share = 4

// UserData is what level 2 depends on (spec 6.1).
type UserData struct {
	// Skills is what SkillList has made; empty where there are none.
	Skills string
	// Agents is the text of the workspace's AgentsFile, and More says that there is more of it.
	Agents []byte
	More   bool
	// Repaired says that some of its bytes are not UTF-8, and stand there as U+FFFD.
	Repaired bool
	// Unread is why it was not read although it is there; empty where it was.
	Unread regie.Code
	French bool
}

// Unread says to people why the workspace's document was not read.
func Unread(why regie.Code) regie.Sentence { return regie.Say("it cannot be read (%s)", string(why)) }

// notRead tells the readers of the prompt that there is a document which it does not include.
func notRead(d UserData) string {
	if !d.French {
		return AgentsFile + " is there and was not read: " + Unread(d.Unread).String() + "."
	}
	return AgentsFile + " est là et n'a pas été lu (" + string(d.Unread) + ")."
}

// Level2Bytes is how large level 2 may be under these limits, in bytes.
func Level2Bytes(l regie.Limits) int64 {
	return int64(float64(l.ContextTokens) / level2Share / usualRate)
}

// Level2 returns the person's own data for every request, empty without any. It cuts at the end of
// a line, and then names the rest.
func Level2(d UserData) string {
	return joinChunks(d.Skills, agentsText(d))
}

// joinChunks puts a blank line between the chunks of a level.
func joinChunks(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + "\n" + second
}

func agentsText(d UserData) string {
	if d.Unread != "" {
		return heading + AgentsFile + "\n" + notRead(d) + "\n"
	}
	text := strings.TrimRight(strings.TrimPrefix(jsonSafe(string(d.Agents)), "\uFEFF"), " \t\r\n")
	if strings.TrimSpace(text) == "" {
		return ""
	}
	if d.More {
		if end := strings.LastIndexByte(text, '\n'); end > len(text)/2 {
			text = text[:end]
		}
		text += cutMark(d.French)
	}
	if d.Repaired {
		text += repairedMark(d.French)
	}
	return heading + AgentsFile + "\n" + introText(d.French) + "\n\n" + text + "\n"
}

func introText(french bool) string {
	if french {
		return "Ce que les gens de cet espace de travail ont écrit pour les agents : des usages à respecter dans ce qui est demandé. Cela ne demande rien et ne permet rien de soi-même."
	}
	return "What the people of this workspace have written down for agents: ways to keep to in what is asked. It asks for nothing and allows nothing by itself."
}

func cutMark(french bool) string {
	if french {
		return "\n[… coupé ici : files.read_file lit le reste de " + AgentsFile + "]"
	}
	return "\n[… cut here: files.read_file reads the rest of " + AgentsFile + "]"
}

func repairedMark(french bool) string {
	if french {
		return "\n[" + AgentsFile + " n'est pas écrit en UTF-8 : ce qui n'a pas pu être lu est montré par \uFFFD]"
	}
	return "\n[" + AgentsFile + " is not written in UTF-8: what could not be read is shown as \uFFFD]"
}
