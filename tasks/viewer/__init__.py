"""Pages over the store: from a cell of a leaderboard to the rows it rests on, and from a row to the exact prompt and
reply of every request that was made for it. Reads; writes nothing.

    reading    one build, as its commits have it now, through DuckDB
    tables     any table: filters, search, order, a page at a time
    rows       one row, what it refers to, what refers to it, what was asked for it
    cells      what a number rests on
    requests   what was sent, and what came back
    talks      a conversation, interaction, dialogue or item with all that was decided and judged of it
    lists      worst scored, most disputed, where judges differ
    overview   builds, and one of them
    app        addresses, headers, pages

All but the last make plain models, which `colloquy trace` prints and the pages show. Whatever is data goes through
`texts`, and through the templates as text.
"""
