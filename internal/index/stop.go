package index

import "strings"

// stopWords are the terms of words that say nothing of what is looked for, in English and in French. A question of nothing else is looked up as it is.
var stopWords = func() map[string]bool {
	out := map[string]bool{}
	for word := range strings.FieldsSeq(`
		a about all also am an and any are as at be been being but by can could did do does doing each for from had has have having how i if in into is it its
		just me my no nor not of on or our ours she should so some such than that the their them then there these they this those to too very was we were what
		when where which while who whom why will with would you your he her his him us get
		au aux avec ce ces cet cette comme comment dans de des du elle elles en est et être eu fait il ils je la le les leur leurs lui ma mais me mes mon ne nos
		notre nous ou où par pas pour pourquoi quand que quel quelle quelles quels qui quoi sa sans se ses si son sont sur ta te tes ton tu un une va vers vos votre
		vous y à c d j l m n qu s t`) {
		for _, term := range termsOf(word) {
			out[term] = true
		}
	}
	return out
}()
