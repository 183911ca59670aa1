"""Texts compared: encoded, searched for near-duplicates, their language told.

What a stage imports:

* `similarity.similarity_of`: an `Encoder` that knows a language, or `ByCharacters`; one place chooses.
* `dedupe.find_duplicates`: duplicates among texts that are held in memory; `dedupe.deduplicate_language`: among those
  of a corpus on disk. `similarity.measure_likeness`: how alike those that stay are.
* `languages.language_of`: the language that a text is in.

Beneath: `encoder` (with `encoder_folder` and `vector_store`) makes vectors, `nearest` (with `bounds` and `approximate`)
finds close ones, `minhash` compares by characters.

One vocabulary for places, all of them numbers from 0:

* `row`: where a text stands in the order in which the caller gives ids, texts and vectors; results name rows.
* `order`: the rows as they are walked, a seeded order of their ids.
* `step`: a place in that order, `row = order[step]`. A search knows steps only.
* `query`: the how manieth of the steps that are searched for at once.
"""
