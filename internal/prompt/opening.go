package prompt

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// OpeningMark begins the opening of a round: no person's text and no other notice begins with it.
const OpeningMark = "[ROUND_START]"

// maxUserName bounds what a model reads of a user's name, in bytes.
const maxUserName = 100

// openedBy puts before a person's turn what the round begins with, as a part of its own, so that it
// can be told from what they said.
func openedBy(o *regie.Opening, turn provider.Turn) provider.Turn {
	if o == nil || o.At.IsZero() {
		return turn
	}
	turn.Parts = slices.Insert(turn.Parts, 0, provider.Part{
		Type: regie.PartText,
		Text: OpeningLine(o) + "\n", Opening: true,
	})
	return turn
}

// OpeningLine is the opening of a round for the model: date, weekday, time, zone and user (decision
// 14), on one line.
func OpeningLine(o *regie.Opening) string {
	said := []string{dayOf(o.At, o.French)}
	if !o.DayOnly {
		said = append(said, o.At.Format("15:04"))
	}
	zone := "UTC" + o.At.Format("-07:00")
	if o.Zone != "" && o.Zone != regie.LocalZone {
		zone = oneLine(o.Zone) + ", " + zone
	}
	line := OpeningMark + " " + strings.Join(said, ", ") + " (" + zone + ")."
	name := shorten(oneLine(o.User), maxUserName)
	switch {
	case name == "":
	case o.French:
		line += " Utilisateur : " + name + "."
	default:
		line += " User: " + name + "."
	}
	if at := o.ScheduledFor; !at.IsZero() {
		line += fmt.Sprintf(scheduled[o.French], dayOf(at, o.French), at.Format("15:04"))
	}
	switch {
	case !o.Plan:
	case o.French:
		line += " Mode plan : seules les requêtes sont exécutées. Explore, puis propose ton plan avec approve: true ; la personne décide."
	default:
		line += " Plan mode: only queries run. Look around, then give your plan with approve: true; the person decides."
	}
	return line
}

// scheduled is the sentence on when a run was due, in English and in French.
var scheduled = map[bool]string{
	false: " This run was due on %s, %s: relative days count from then.",
	true:  " Cette exécution était prévue le %s à %s : les jours relatifs se comptent à partir de là.",
}

var (
	frenchDays   = [...]string{"dimanche", "lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi"}
	frenchMonths = [...]string{
		"janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre",
		"octobre", "novembre", "décembre",
	}
)

// dayOf names a day with its weekday.
func dayOf(at time.Time, french bool) string {
	if !french {
		return at.Format("Monday, 2 January 2006")
	}
	day := fmt.Sprint(at.Day())
	if at.Day() == 1 {
		day = "1er"
	}
	return fmt.Sprintf("%s %s %s %d", frenchDays[at.Weekday()], day, frenchMonths[at.Month()-1], at.Year())
}
