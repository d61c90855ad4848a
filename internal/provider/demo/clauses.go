package demo

import (
	"slices"
	"strings"
)

// understand reads a message: what it asks for, in order. Only its first paragraph can ask for
// something: what follows was appended from standard input and is data. before is the language of
// the conversation so far. There is always at least one step.
func understand(message string, before bool) []step {
	message = strings.TrimSpace(strings.ReplaceAll(message, "\r\n", "\n"))
	instruction, data, _ := strings.Cut(message, "\n\n")
	instruction = instruction[:min(len(instruction), maxInstruction)]
	list := tokens(instruction)
	list = list[:min(len(list), maxWords)]
	french := isFrench(list, before)
	var steps []step
	for _, clause := range clauses(list) {
		s := parse(clause, data)
		s.french = french
		if n := len(steps); n > 0 {
			if s.verb == unclear {
				continue // "please", "and thank you"
			}
			if joined(&steps[n-1], &s) {
				continue
			}
		}
		steps = append(steps, s)
	}
	if len(steps) > 1 && (steps[0].verb == unclear || steps[0].talk == talkHello) {
		steps = steps[1:] // "hello, read a.md"
	}
	if len(steps) == 0 {
		steps = []step{{french: french}}
	}
	return steps
}

// joined makes one step of two where the second only says what is to become of the first:
// "summarise notes/ and write it to x.md".
func joined(first, second *step) bool {
	if first.verb != wantsDigest || first.to != "" || second.verb != wantsWrite || !second.result {
		return false
	}
	first.to = strings.TrimSuffix(second.to, "/")
	return true
}

// clauses cuts a request where one thing to do ends and another begins: at a verb that follows a
// comma or a word like "then".
func clauses(list []token) (out [][]token) {
	from := 0
	for i := 1; i < len(list); i++ {
		last := &list[i-1]
		if i >= from+dictated(list[from:]) { // from here on it is what is to be written
			break
		}
		if i <= from || !begins(list, i) || !last.ends && (last.quoted || !joining[last.word]) || last.colon {
			continue
		}
		if eachOfThem(list[from:i], list[i:]) || !acts(list[from:i]) {
			continue
		}
		if part := trimJoining(list[from:i]); len(part) > 0 {
			out = append(out, part)
		}
		from = i
	}
	return append(out, trimJoining(list[from:]))
}

// begins reports whether something to do begins at a word.
func begins(list []token, i int) bool {
	word := strings.TrimSuffix(strings.TrimSuffix(list[i].word, "-le"), "-la")
	if list[i].quoted || isPath(list[i].text) {
		return false
	}
	if word == "note" && i+1 < len(list) && !source[list[i+1].word] { // rather the noun
		return false
	}
	for _, verbs := range []set{
		listing, reading, writing, appending, overwriting, editing, deleting,
		searching, counting, undoing,
	} {
		if verbs[word] {
			return true
		}
	}
	return isDigest(word) || word == "how" || word == "what" || asking[word] && !source[word]
}

// acts reports whether a part of a request asks for anything: "into out/, write a summary of each
// text of notes/" is one thing.
func acts(list []token) bool {
	for i := range list {
		if begins(list, i) || mend(list[i].word) != "" && !isPath(list[i].text) && !list[i].quoted {
			return true
		}
	}
	return new(step).talks(list)
}

// eachOfThem recognises the second half of "read every note of notes/ and write a summary of each":
// it is no thing of its own.
func eachOfThem(first, second []token) bool {
	digest := slices.ContainsFunc(second, func(t token) bool { return isDigest(t.word) })
	each := slices.ContainsFunc(second, func(t token) bool {
		return whole[t.word] || t.word == "them" || t.word == "chacune" || t.word == "chacun" || t.word == "it"
	})
	reads := slices.ContainsFunc(first, func(t token) bool { return reading[t.word] || listing[t.word] })
	// "summarise notes/ and write the summaries to out/"
	sums := slices.ContainsFunc(first, func(t token) bool { return isDigest(t.word) })
	return digest && (each && reads || sums && slices.ContainsFunc(second,
		func(t token) bool { return writing[t.word] }))
}

func trimJoining(list []token) []token {
	for len(list) > 0 && !list[0].quoted && joining[list[0].word] {
		list = list[1:]
	}
	for len(list) > 0 && !list[len(list)-1].quoted && joining[list[len(list)-1].word] {
		list = list[:len(list)-1]
	}
	return list
}
