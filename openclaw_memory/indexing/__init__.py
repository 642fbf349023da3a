"""Make the index follow the files: compare, read changed files, cut, embed new texts, write.

Everything slow (reading, chunking, embedding) happens before a transaction opens, and a transaction holds whole notes
and whole parts of transcripts: a run that is cut short at any point leaves an index that answers, and the next run goes
on from there.
"""
