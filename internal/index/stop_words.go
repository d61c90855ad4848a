package index

import "strings"

// englishStop and frenchStop list words that carry no meaning in a query.
const (
	englishStop = `a about all also am an and any are as at be been being but by can could did do does doing each for from had has have having how i if in into
		is it its just me my no nor not of on or our ours she should so some such than that the their them then there these they this those to too very was we
		were what when where which while who whom why will with would you your he her his him us get`
	frenchStop = `a au aux avec ce ces cet cette comme comment dans de des du elle elles en est et être eu fait il ils je la le les leur leurs lui ma mais me
		mes mon ne nos notre nous ou où par pas pour pourquoi quand que quel quelle quelles quels qui quoi sa sans se ses si son sont sur ta te tes ton tu un
		une va vers vos votre vous y à c d j l m n qu s t`
)

// stopWords are the terms of those words. A question of nothing else is looked up as it is.
var stopWords = func() map[string]bool {
	out := map[string]bool{}
	for word := range strings.FieldsSeq(englishStop + " " + frenchStop) {
		for _, term := range append(termsOf(word), frenchStems(word)...) {
			out[term] = true
		}
	}
	return out
}()

// onlyFrench are words by which a text is known to be French: no other language that people write
// programs in has them.
var onlyFrench = func() map[string]bool {
	out := map[string]bool{}
	for word := range strings.FieldsSeq(`aux avec ces cette dans des du elle est et être il ils je la le les leur leurs mais nous où par pas pour que quelle qui
		sans ses sont sur une vous`) {
		out[word] = true
	}
	return out
}()

// isFrench reports whether a word is one that French alone has, or has an accent of its.
func isFrench(word string) bool {
	return onlyFrench[strings.ToLower(word)] || strings.ContainsAny(word, "éèêàçùîôûëïœÉÈÊÀÇŒ")
}
