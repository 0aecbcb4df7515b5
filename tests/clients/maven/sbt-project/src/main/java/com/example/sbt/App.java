package com.example.sbt;

/** Something to publish. */
public final class App {}
