package text

// french holds the translations, by their English sentence.
var french = map[string]string{}
