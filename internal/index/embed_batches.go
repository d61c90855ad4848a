package index

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Retry limits for an embedder that fails temporarily.
const (
	attempts  = 4
	firstRest = time.Second      // then twice as long each time
	mostRest  = 30 * time.Second // an embedder that wishes for more is left alone
)

// sent is what came of a batch.
type sent struct {
	vectors   [][]float32 // nil where the model cannot embed the text
	cut       int64
	usage     regie.Usage
	estimated bool
	reserved  int64 // of the day's budget
	lost      int64 // upper bound of tokens in requests without a usable answer, which may be billed
	tried     bool  // the embedder works, so what fails is the text
}

func (s *sent) vectorSize() int {
	for _, v := range s.vectors {
		if v != nil {
			return len(v)
		}
	}
	return 0
}

// checkAffordable returns an error where a budget forbids what has no price.
func checkAffordable(e provider.Embedder, money *Money) error {
	if money.Capped && !money.Known {
		return &refusal{regie.CodePriceUnknown, regie.Say(
			"the price of the embedding model %s is unknown, and a budget is set: set providers.%s.prices in regie.yaml", e.Model(), e.Name())}
	}
	return nil
}

// isEmbedders reports whether an error is of the embedder or of its budget: then the index is as
// good as before.
func isEmbedders(err error) bool {
	var failed *provider.Error
	var refused *refusal
	return errors.As(err, &failed) || errors.As(err, &refused)
}

// sendBatch embeds a batch. If texts make the model fail, it halves the batch down to those texts:
// they get no vector, the others do.
func (e *embedding) sendBatch(ctx context.Context, texts []pending) (*sent, error) {
	out := &sent{vectors: make([][]float32, len(texts))}
	plain := make([]string, len(texts))
	for i := range texts {
		plain[i] = texts[i].text
	}
	if len(texts) == 0 { // all have a vector already
		return out, nil
	}
	if err := e.sendParts(ctx, plain, 0, attempts, out); err != nil {
		return nil, errors.Join(err, e.bookFailed(ctx, out))
	}
	return out, nil
}

// harmless is a text that every model can embed: where this one fails too, it is not for the texts.
const harmless = "The quick brown fox jumps over the lazy dog."

// sendParts embeds texts that begin at a place.
func (e *embedding) sendParts(ctx context.Context, texts []string, at, tries int, out *sent) error {
	made, err := e.askEmbedder(ctx, texts, tries, out)
	switch {
	case err == nil:
		copy(out.vectors[at:], made.Vectors)
		out.cut += int64(len(made.Cut))
		out.usage.Input += made.Usage.Input
		out.estimated = out.estimated || made.Estimated
		return nil
	case !forTheText(err):
		return err
	case len(texts) == 1:
		if !out.tried {
			if _, err := e.askEmbedder(ctx, []string{harmless}, 1, out); err != nil {
				return err
			}
			out.tried = true
		}
		return nil
	}
	half := len(texts) / 2
	if err := e.sendParts(ctx, texts[:half], at, 1, out); err != nil {
		return err
	}
	return e.sendParts(ctx, texts[half:], at+half, 1, out)
}

// forTheText reports whether one of the texts may cause an error: some texts make a model return
// NaN, which its server cannot encode, or refuse the input.
func forTheText(err error) bool {
	var failed *provider.Error
	if !errors.As(err, &failed) {
		return false
	}
	switch failed.Code {
	case regie.CodeBadReply, regie.CodeContextTooLarge:
		return true
	default:
		return !failed.Misplaced && (failed.Status == http.StatusBadRequest ||
			failed.Status == http.StatusUnprocessableEntity || failed.Status == http.StatusInternalServerError)
	}
}

// askEmbedder asks the embedder, so often. What may have been paid for in vain is counted as lost,
// and reserved once more before the next request.
func (e *embedding) askEmbedder(ctx context.Context, texts []string, tries int, out *sent) (*provider.Embedding,
	error,
) {
	wait := firstRest
	for try := 1; ; try++ {
		if err := e.reserveNext(ctx, out, countTokens(texts)); err != nil {
			return nil, err
		}
		made, err := e.embedder.Embed(ctx, provider.ForDocument, texts)
		if err != nil {
			out.lost += chargedTokens(err, texts)
		} else if texts[0] == harmless { // the probe is not one of the texts to count
			out.lost += made.Usage.Input
		}
		var failed *provider.Error
		if err == nil || !errors.As(err, &failed) || !failed.Retryable || failed.Offline || try >= tries ||
			failed.RetryAfter > mostRest {
			return made, err
		}
		if err := e.index.rest(ctx, max(wait, failed.RetryAfter)); err != nil {
			return nil, err
		}
		wait *= 2
	}
}

// countTokens returns what texts have at most: no text has more tokens than bytes (decision 29).
func countTokens(texts []string) (n int64) {
	for _, text := range texts {
		n += int64(len(text)) + besides
	}
	return n
}

// chargedTokens returns an upper bound of the tokens that a failed request costs. An unsent or
// refused request costs nothing. The cost of a request with a lost or unusable answer is unknown.
func chargedTokens(err error, texts []string) int64 {
	var failed *provider.Error
	switch {
	case !errors.As(err, &failed):
		return countTokens(texts)
	case failed.Usage.Input > 0:
		return failed.Usage.Input
	case failed.Offline || failed.Status >= http.StatusBadRequest:
		return 0
	default:
		return countTokens(texts)
	}
}

// waitFor waits.
func waitFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// countBatch adds a batch to the totals, and returns its cost.
func (e *embedding) countBatch(made *sent) int64 {
	for _, v := range made.vectors {
		if v != nil {
			e.out.Made++
		} else {
			e.out.Refused++
		}
	}
	e.out.Cut += made.cut
	return e.costOf(made)
}

// costOf counts the tokens of a batch, lost ones included, and returns their cost.
func (e *embedding) costOf(made *sent) int64 {
	used := made.usage
	used.Input += made.lost
	e.out.Tokens += used.Input
	e.out.Estimated = e.out.Estimated || made.estimated || made.lost > 0
	cost, known := e.index.config.Money.Price.Cost(used)
	if !known || !e.index.config.Money.Known {
		e.out.Priced = false
		return 0
	}
	e.out.Cost += cost
	return cost
}

// besides is an upper bound of the tokens that the model gets in addition to each text.
const besides = 64

// reserveNext reserves the most that the next request can cost from the day's budget, unless the
// current reservation covers it besides the used and lost tokens.
func (e *embedding) reserveNext(ctx context.Context, out *sent, next int64) error {
	money := &e.index.config.Money
	if money.PerDay == 0 || money.Price.Free() {
		return nil
	}
	most, _, known := money.Price.Most(out.usage.Input+out.lost+next, 0)
	if !known {
		return &refusal{
			regie.CodePriceUnknown,
			regie.Say("the price of a batch of this size with the embedding model %s is unknown, and a budget is set",
				e.embedder.Model()),
		}
	}
	more := most - out.reserved
	if more <= 0 {
		return nil
	}
	err := e.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var spent int64
		if err := tx.QueryRowContext(ctx, "SELECT coalesce(max(microusd), 0) FROM embedding_costs WHERE day = ?",
			todayKey()).Scan(&spent); err != nil {
			return err
		}
		if spent+more > money.PerDay {
			return &refusal{
				regie.CodeOverBudget,
				regie.Say(
					"the daily budget does not cover the next texts to embed ($%s of $%s is used)",
					regie.Dollars(spent), regie.Dollars(money.PerDay)),
			}
		}
		return addSpent(ctx, tx, more)
	})
	if err == nil {
		out.reserved = most
	}
	return err
}

// bookFailed books the possible cost of a failed batch, and returns the rest of its reservation.
func (e *embedding) bookFailed(ctx context.Context, out *sent) error {
	cost := e.costOf(out)
	if cost == out.reserved {
		return nil
	}
	return e.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return addSpent(ctx, tx, cost-out.reserved)
	})
}

// addSpent adds to what embedding took today, or takes away what was reserved too much.
func addSpent(ctx context.Context, tx *sql.Tx, amount int64) error {
	if amount == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO embedding_costs (day, microusd) VALUES (?1, max(0, ?2))
		ON CONFLICT (day) DO UPDATE SET microusd = max(0, embedding_costs.microusd + ?2)`, todayKey(), amount)
	return err
}

func todayKey() string { return time.Now().UTC().Format(time.DateOnly) }
